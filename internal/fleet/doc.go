// Package fleet has contenders on many hosts race: serve is the one that asks, join the many that do.
//
// Hosts meet over NATS. Each joined host works inside one directory that its own command line names, keeps contender
// processes ready there, and carries out orders: enter a directory of ours, run rounds, do one operation, kill a contender.
// What its contenders see comes back raw. A round starts at an instant that is agreed when all have arrived.
//
// All instants are those of the coordinator's CLOCK_MONOTONIC. Each host is told by how much to correct its own, so that
// events, orders and what contenders write into their words need no conversion. What is not known of the correction is
// kept, and an overlap of two attempts that it could explain is none.
//
// All hosts show one token. The embedded server tells them apart by a key that each draws for itself: a host hears the
// orders that are for it and no others, answers for itself, and announces what its own contenders write. On a NATS server
// that was there already only that server's permissions part them: whoever may publish there may make a joined host do,
// inside its directory, everything that a probe does.
//
// The package's caveat: whoever has the token may join in the place of a host, and read what contenders announce. The
// token is the fence, not the protocol, and a result is as honest as the least honest of its hosts.
package fleet
