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
// The package's caveat: whoever has the token may make a joined host do, inside its directory, everything that a probe
// does, and speak for another host: all show one token, and the server does not know which host a connection is. The token
// is the fence, not the protocol, and a result is as honest as the least honest of its hosts.
package fleet
