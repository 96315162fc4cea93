#!/bin/bash
# Run compose.yaml and compose.local.yaml for real, in a User-mode Linux kernel that has NFS, on a machine that has
# neither Docker nor NFS in its own kernel, and reaches no image registry. Needs root, and an hour.
#
#   configs/compose-lab.sh DIR           # DIR: where everything is made; results and logs stay in DIR/out
#   configs/compose-lab.sh DIR 'COMMAND' # run that in the guest instead, in the directory of compose.yaml
#
# Packages: user-mode-linux kmod iproute2 iptables docker.io debootstrap; and Go, to build claimbench and docker compose.
# The image is not built by the Dockerfile, whose base images would have to be fetched: debootstrap makes the same Debian
# with the same packages, and docker import makes an image of it.
set -euo pipefail

compose=v2.32.4 # of github.com/docker/compose/v2
lab=/mnt/lab    # DIR, in the guest
project=/run/claimbench

prepare() {
	cd "$(dirname "$0")/.."
	mkdir -p "$1"/{out,uml,project/results}
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$1/claimbench" ./cmd/claimbench
	if [ ! -x "$1/docker-compose" ]; then
		mkdir -p "$1/module"
		(
			cd "$1/module"
			[ -e go.mod ] || go mod init compose.invalid/lab
			go get "github.com/docker/compose/v2/cmd@$compose"
			CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X github.com/docker/compose/v2/internal.Version=$compose" -o ../docker-compose github.com/docker/compose/v2/cmd
		)
	fi
	if [ ! -e "$1/debian.tar" ]; then
		debootstrap --variant=minbase --include=nfs-common,nfs-kernel-server,rpcbind bookworm "$1/debian"
		rm -rf "$1"/debian/usr/share/{doc,info,locale,man} "$1"/debian/var/cache/apt "$1"/debian/var/lib/apt/lists/*
		tar -C "$1/debian" --one-file-system -cf "$1/debian.tar.new" .
		mv "$1/debian.tar.new" "$1/debian.tar"
	fi
	cp -r compose.yaml compose.local.yaml Dockerfile configs "$1/project"
	mkdir -p /etc/docker # where a key of the guest's dockerd goes: into memory, but over a directory that must be there
}

boot() {
	setsid linux.uml mem=4096M umid=compose "uml_dir=$1/uml" rootfstype=hostfs rootflags=/ ro quiet con=null con0=null,fd:1 \
		"init=$(realpath "$0")" "compose_lab=$1" guest >"$1/out/console.log" 2>&1 </dev/null &
	local group=$!
	# The kernel's helpers would outlive the kernel.
	trap "kill -KILL -- -$group 2>/dev/null || true; rm -rf '$1/uml'" EXIT
	wait "$group" || true
	cat "$1/out/status" 2>/dev/null || { tail -n 20 "$1/out/console.log" >&2; return 1; }
}

# guest is init of the guest.
guest() {
	export PATH=/run/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/run/home
	mount -t proc proc /proc
	mount -t sysfs sys /sys
	mount -t devtmpfs dev /dev 2>/dev/null || true
	mkdir -p /dev/pts /dev/shm
	mount -t devpts devpts /dev/pts
	mount -t cgroup2 cgroup2 /sys/fs/cgroup
	local d
	for d in /run /tmp /mnt /media /var/lib /var/log /etc/docker /dev/shm; do
		mount -t tmpfs -o size=90% tmpfs "$d"
	done
	mkdir -p "$lab" /media/lib/modules "$HOME/.docker/cli-plugins" /run/bin
	mount -t hostfs -o "$compose_lab" none "$lab"
	mount --bind /usr/lib/uml/modules /media/lib/modules
	printf '#!/bin/sh\nexec modprobe -d /media "$@"\n' >/run/modprobe
	chmod +x /run/modprobe
	echo /run/modprobe >/proc/sys/kernel/modprobe
	hostname compose-lab
	ip link set lo up
	/run/modprobe -a overlay bridge veth br_netfilter iptable_nat iptable_filter xt_conntrack xt_MASQUERADE nf_nat xt_nat xt_addrtype \
		sunrpc nfsd nfs nfsv3 nfsv4 lockd
	echo 1 >/proc/sys/net/ipv4/ip_forward
	# dockerd does not get along with the other flavour in this kernel.
	ln -s /usr/sbin/iptables-legacy /run/bin/iptables
	ln -s /usr/sbin/ip6tables-legacy /run/bin/ip6tables
	ln -s "$lab/docker-compose" "$HOME/.docker/cli-plugins/docker-compose"
	ln -s "$lab/claimbench" /run/bin/claimbench
	dockerd --data-root /run/docker-data --exec-root /run/docker-exec --pidfile /run/docker.pid >"$lab/out/dockerd.log" 2>&1 &
	until docker version >/dev/null 2>&1; do sleep 1; done
	said "dockerd is up"
	images
	cp -r "$lab/project" "$project"
	cd "$project"
	if [ -e "$lab/command" ]; then
		export -f run said down
		export lab
		bash "$lab/command"
	else
		surveys
	fi
}

said() { echo "[$(cut -d' ' -f1 /proc/uptime) s] $*"; }

# images makes what the Dockerfile would: its last stage by Docker itself, with the program in the place of its build.
images() {
	docker import -c 'ENTRYPOINT ["/usr/local/bin/claimbench-container"]' "$lab/debian.tar" claimbench-debian >/dev/null
	mkdir -p /run/build/image/data
	cd /run/build
	cp "$lab/claimbench" claimbench
	cp -r "$lab/project/configs" .
	chmod 0777 image/data
	{
		echo "FROM claimbench-debian"
		sed -n '/ AS nfs$/,/^$/p' "$lab/project/Dockerfile" | grep -E '^(COPY|ENTRYPOINT)' | sed 's,--from=build /src/bin/claimbench,claimbench,'
	} >nfs.Dockerfile
	sed -n '/^FROM scratch/,$p' "$lab/project/Dockerfile" | sed 's,--from=build /src/bin/claimbench,claimbench,; s,--from=build /image,image,' >Dockerfile
	docker build -q -t claimbench-nfs -f nfs.Dockerfile . && docker build -q -t claimbench .
	said "images: $(docker images --format '{{.Repository}} {{.Size}}' | tr '\n' ';')"
}

# surveys are the commands of docs/containers.md. The kernel has one CPU: what takes long elsewhere takes too long here,
# and containers may take minutes to join.
surveys() {
	export SURVEY="survey --wait 10m --anonymize --config /configs/compose-lab.yaml"
	run compose-nfs42 docker compose up --scale contender=4 --exit-code-from coordinator
	down
	SURVEY="probe excl-create,flock --wait 10m --anonymize --config /configs/compose-lab.yaml --budget 5m"
	CLAIMS=shared run compose-shared docker compose up --scale contender=4 --exit-code-from coordinator
	CLAIMS=shared down
	NFS_VERSION=3 NFS_OPTIONS=noac run compose-nfs3 docker compose up --scale contender=4 --exit-code-from coordinator
	down
	run local docker compose -f compose.local.yaml up --scale contender=4 --exit-code-from coordinator
	run overlay docker compose -f compose.local.yaml run --rm overlay
	run volume docker compose -f compose.local.yaml run --rm volume
	down -f compose.local.yaml
	run scratch docker run --rm claimbench survey --out - /data
}

down() { timeout --kill-after=1m 5m docker compose "$@" down --volumes || said "docker compose $* down: status $?"; }

# run keeps what a command prints, its exit status and its results. One that hangs does not take the others with it.
run() {
	local name=$1 status=0
	shift
	said "$*"
	timeout --kill-after=1m 1h "$@" >"$lab/out/$name.log" 2>&1 || status=$?
	said "$name: status $status"
	echo "$name $status" >>"$lab/out/status"
	local f
	for f in results/*.json; do
		[ ! -e "$f" ] || mv "$f" "$lab/out/$name.json"
	done
}

if [ "${1:-}" = guest ] && [ $$ = 1 ]; then
	trap 'sync; halt -f' EXIT
	guest
	exit
fi
[ $# -ge 1 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mkdir -p "$1"
dir=$(realpath "$1")
rm -f "$dir/out/status" "$dir/command"
prepare "$dir"
[ $# -lt 2 ] || echo "$2" >"$dir/command"
boot "$dir"
