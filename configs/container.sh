#!/bin/bash
# What the containers of compose.yaml and compose.local.yaml do:
#
#   claimbench-container server           serve /export by the kernel's NFS server, in this container's network namespace
#   claimbench-container contender        mount it as an NFS client of its own, and join
#   claimbench-container coordinator RUN  survey, with as many hosts as there are contenders; RUN is what serve is to run
#
# Mounting takes root. What races afterwards does not: it runs without privileges.
set -euo pipefail

nobody=65532
token=/meeting/token
exports=/etc/exports.d/claimbench.exports

die() {
	echo "$*" >&2
	exit 1
}

# rpc_services starts what NFSv3 needs on each machine; NFSv4 needs nothing.
rpc_services() {
	rpcbind -w
	rpc.statd --no-notify
}

# unprivileged turns into a command of another user, which can't become root again.
unprivileged() {
	local user=$1 group=$2
	shift 2
	exec setpriv --reuid="$user" --regid="$group" --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all "$@"
}

# wait_for_end sleeps until compose stops this container. Were it to end by itself, with --exit-code-from compose would
# stop all others, and might say 0 of a survey that was cut short.
wait_for_end() {
	sleep infinity &
	wait $!
}

server() {
	[ -e /proc/fs/nfsd ] || die "this kernel has no NFS server; on the machine that runs Docker: modprobe -a nfsd nfs"
	trap 'rpc.nfsd 0; exportfs -au' EXIT
	trap 'exit 0' TERM INT
	chmod 0777 /export
	mkdir -p "${exports%/*}" /run/rpc_pipefs /var/lib/nfs/nfsdcld
	echo '/export *(rw,sync,no_subtree_check,insecure,fsid=0)' >"$exports"
	mount -t nfsd nfsd /proc/fs/nfsd
	mount -t rpc_pipefs rpc_pipefs /run/rpc_pipefs
	nfsdcld -p /run/rpc_pipefs
	local threads=(-N 3) mounts=(-N 2 -N 3)
	if [ "$NFS_VERSION" = 3 ]; then
		rpc_services
		threads=() mounts=()
	fi
	exportfs -ra
	# A short lease, so that what waits for one need not wait long.
	rpc.nfsd "${threads[@]}" --lease-time 15 --grace-time 10 8
	rpc.mountd "${mounts[@]}"
	touch /run/serving
	wait_for_end
}

# mount_share mounts the export from here, so that this network namespace is the NFS client. By the identifier the server
# tells it from the others; without one it would be the host name, which containers may have in common.
mount_share() {
	local path=/ identifier=/sys/fs/nfs/net/nfs_client/identifier
	if [ "$NFS_VERSION" = 3 ]; then
		rpc_services
		path=/export
	fi
	if [ -w "$identifier" ]; then
		echo "$HOSTNAME" >"$identifier"
	fi
	mkdir -p "$1"
	mount -t nfs -o "vers=$NFS_VERSION,$NFS_OPTIONS" "nfs:$path" "$1"
}

# contender stays when it cannot join: the coordinator then says who is missing.
contender() {
	joined=
	trap '[ -z "$joined" ] || { kill -TERM "$joined" && wait "$joined"; } || true; exit 0' TERM INT
	join || echo "status $?: this contender takes no part" >&2
	wait_for_end
}

join() {
	local dir=/volume
	case $CLAIMS in
	own)
		dir=/claims
		mount_share "$dir" || return
		;;
	shared) ;;
	local) chmod 0777 "$dir" || return ;;
	*)
		echo "CLAIMS=$CLAIMS: must be own, shared or local" >&2
		return 2
		;;
	esac
	until [ -s "$token" ]; do sleep 0.2; done
	CLAIMBENCH_TOKEN=$(<"$token")
	export CLAIMBENCH_TOKEN
	(unprivileged "$nobody" "$nobody" claimbench join --dir "$dir" nats://coordinator:4222) &
	joined=$!
	wait "$joined"
}

# coordinator draws a token for this run, which the contenders read. It writes the result as the owner of /results.
coordinator() {
	if [ -z "${CLAIMBENCH_TOKEN:-}" ]; then
		CLAIMBENCH_TOKEN=$(od -An -vtx1 -N24 /dev/urandom | tr -d ' \n')
		export CLAIMBENCH_TOKEN
	fi
	(umask 077 && printf %s "$CLAIMBENCH_TOKEN" >"$token.new")
	mv "$token.new" "$token"
	local hosts
	hosts=$(getent ahostsv4 contender | cut -d' ' -f1 | sort -u | wc -l)
	unprivileged "$(stat -c %u /results)" "$(stat -c %g /results)" \
		claimbench serve --hosts "$hosts" --listen 0.0.0.0:4222 "$@" --out "/results/compose-$(date -u +%Y%m%dT%H%M%SZ).json"
}

case ${1:-} in
server | contender | coordinator) "$@" ;;
*) die "usage: claimbench-container server | contender | coordinator RUN" ;;
esac
