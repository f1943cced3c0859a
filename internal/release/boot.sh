#!/usr/bin/env bash
# Boots a Debian in namespaces of its own, installs the package under a real systemd, kills the service, updates it, stops
# it, and removes the package; then the same by the RPM package beside it, which Debian's rpm installs for its scripts. It needs root, mmdebstrap and unshare, and the databases of `bin/devstack run`; the machine's own
# systemd, if any, is left alone. `make test-boot` runs it.
#
#   boot.sh PACKAGE.deb
set -euo pipefail

# inside ROOT: becomes process 1 of the machine. The services' own mounts need shared propagation, which systemd sets up
# outside containers alone.
inside() {
	local root=$1 node
	mount --make-rprivate /
	mount --bind "$root" "$root"
	mount -t proc proc "$root/proc"
	mount -t sysfs -o ro sysfs "$root/sys"
	mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
	mount -t tmpfs tmpfs "$root/run"
	mount -t tmpfs tmpfs "$root/tmp"
	mount -t tmpfs -o mode=755 dev "$root/dev"
	for node in null zero full random urandom tty; do
		touch "$root/dev/$node"
		mount --bind "/dev/$node" "$root/dev/$node"
	done
	mkdir "$root/dev/pts" "$root/dev/shm"
	mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
	ln -s pts/ptmx "$root/dev/ptmx"
	ln -s /proc/self/fd "$root/dev/fd"
	mount -t tmpfs shm "$root/dev/shm"
	mount -o bind,ro "$root/proc/sys" "$root/proc/sys"
	cd "$root"
	mkdir -p old
	pivot_root . old
	umount -l /old
	mount --make-rshared /
	exec env -i container=lxc PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --log-target=journal --show-status=0
}

if [[ ${1:-} == inside ]]; then
	inside "$2"
fi

package=$1
address=127.0.0.1:18099
work=$(mktemp -d)
init=
outer=
finish() {
	if [[ -n $init ]]; then kill -9 "$init" 2>/dev/null || true; fi
	if [[ -n $outer ]]; then wait "$outer" 2>/dev/null || true; fi
	rm -rf --one-file-system "$work"
}
trap finish EXIT

fail() {
	echo "boot: $1" >&2
	in_machine journalctl --unit tocsin --no-pager 2>/dev/null | tail -30 >&2 || true
	exit 1
}

in_machine() { nsenter --target "$init" --mount --pid --uts --ipc --cgroup -- env PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }

# until SECONDS COMMAND...: repeats the command until it succeeds.
until_done() {
	local end=$((SECONDS + $1))
	shift
	while ! "$@" >/dev/null 2>&1; do
		if ((SECONDS > end)); then fail "not within the time: $*"; fi
		sleep 0.2
	done
}

booted() {
	init=$(pgrep --parent "$outer" --oldest) || return 1
	[[ $(in_machine systemctl is-system-running) =~ ^(running|degraded)$ ]]
}

echo 'boot: making a Debian'
mmdebstrap --quiet --variant=minbase --include=systemd,dbus,rpm "${SUITE:-bookworm}" "$work/root"
cp "$package" "$work/root/root/tocsin.deb"
cp "${package%/*}"/*.rpm "$work/root/root/tocsin.rpm"
unshare --mount --pid --uts --ipc --cgroup --fork "$0" inside "$work/root" &
outer=$!
until_done 60 booted

in_machine dpkg --install /root/tocsin.deb
cat >"$work/settings" <<EOF
postgres-url: ${TOCSIN_TEST_POSTGRES_URL:?run this by make test-boot}
clickhouse-url: ${TOCSIN_TEST_CLICKHOUSE_URL:?run this by make test-boot}
encryption-key: AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=
listen: $address
EOF
in_machine sh -c 'cat > /etc/tocsin/tocsin.yaml' <"$work/settings"
[[ $(in_machine stat --format='%a %U' /etc/tocsin/tocsin.yaml) == '600 root' ]] || fail 'others than root can read the settings'
in_machine tocsin --config /etc/tocsin/tocsin.yaml config check
in_machine systemctl enable --now tocsin
until_done 60 in_machine tocsin healthcheck --listen "$address"

process=$(in_machine systemctl show --property=MainPID --value tocsin)
in_machine grep --quiet '^CapEff:.*\<0\+$' "/proc/$process/status" || fail 'the service has capabilities'
if in_machine grep --quiet '^Uid:.*\<0\>' "/proc/$process/status"; then fail 'the service runs as root'; fi

in_machine systemctl kill --signal=KILL tocsin
restarted() { [[ $(in_machine systemctl show --property=MainPID --value tocsin) != "$process" ]] && in_machine tocsin healthcheck --listen "$address"; }
until_done 60 restarted

# An update restarts the service where it runs, and leaves what the administrator has decided.
process=$(in_machine systemctl show --property=MainPID --value tocsin)
in_machine dpkg --install /root/tocsin.deb
until_done 60 restarted
in_machine systemctl is-enabled --quiet tocsin || fail 'the update disabled the service'
[[ $(in_machine cat /etc/tocsin/tocsin.yaml) == "$(cat "$work/settings")" ]] || fail 'the update changed the settings'
in_machine systemctl stop tocsin
in_machine dpkg --install /root/tocsin.deb
if in_machine systemctl is-active --quiet tocsin; then fail 'the update started a service that was stopped'; fi
in_machine systemctl start tocsin
until_done 60 in_machine tocsin healthcheck --listen "$address"

# A service that cannot start is no reason to leave the package half installed.
in_machine sh -c 'echo "postgres-url: postgres://127.0.0.1:1/nowhere" > /etc/tocsin/tocsin.yaml'
in_machine dpkg --install /root/tocsin.deb
[[ $(in_machine dpkg-query --show --showformat='${db:Status-Status}' tocsin) == installed ]] || fail 'the package is half installed'
in_machine sh -c 'cat > /etc/tocsin/tocsin.yaml' <"$work/settings"
until_done 60 in_machine tocsin healthcheck --listen "$address"

in_machine systemctl stop tocsin
[[ $(in_machine systemctl show --property=Result --value tocsin) == success ]] || fail 'the service did not end in an orderly way'
in_machine systemctl start tocsin
in_machine dpkg --remove tocsin
if in_machine systemctl is-active --quiet tocsin; then fail 'the service runs after the removal'; fi
in_machine test -f /etc/tocsin/tocsin.yaml || fail 'the removal took the settings'
in_machine dpkg --purge tocsin
if in_machine test -e /etc/tocsin; then fail 'the purge left the settings'; fi

# Debian's rpm knows of no other package.
rpm_package() { in_machine rpm --force-debian --nodeps "$@" /root/tocsin.rpm; }
rpm_package --install
[[ $(in_machine stat --format='%a %U' /etc/tocsin/tocsin.yaml) == '600 root' ]] || fail 'others than root can read the settings of the RPM package'
in_machine sh -c 'cat > /etc/tocsin/tocsin.yaml' <"$work/settings"
in_machine systemctl enable --now tocsin
until_done 60 in_machine tocsin healthcheck --listen "$address"
process=$(in_machine systemctl show --property=MainPID --value tocsin)
rpm_package --upgrade --replacepkgs
until_done 60 restarted
[[ $(in_machine cat /etc/tocsin/tocsin.yaml) == "$(cat "$work/settings")" ]] || fail 'the update by rpm changed the settings'
in_machine rpm --erase tocsin
if in_machine systemctl is-active --quiet tocsin; then fail 'the service runs after rpm --erase'; fi
if in_machine test -e /usr/bin/tocsin; then fail 'rpm --erase left the program'; fi
in_machine test -f /etc/tocsin/tocsin.yaml.rpmsave || fail 'rpm --erase took the settings'
echo 'boot: installed, ran, restarted after a kill and by an update, stopped, removed'
