#!/bin/sh
# Tries Debian packages where nothing else of Isochrone is: in a root of the release that runs here, with a C compiler
# for the example and a debugger for the symbols. Installs them, runs the command as an ordinary user, removes them, and
# looks for what they leave.
# Takes root, mmdebstrap and unshare.
#
#   clean-root.sh ROOT ARCHIVE PACKAGE.deb ...     ROOT: a folder to make; ARCHIVE: the root, made once and kept
set -eu
root=$1 archive=$2
shift 2
if [ "$(id -u)" != 0 ]; then
  echo "the packages were not tried: changing the root takes the superuser" && exit 0
fi
command -v mmdebstrap >/dev/null || { echo "mmdebstrap is not there: apt-get install mmdebstrap" >&2; exit 1; }
if ! tar -tf "$archive" ./usr/bin/gdb >/dev/null 2>&1; then
  . /etc/os-release
  mmdebstrap --quiet --format=tar --variant=minbase --include=man-db,gcc,libc6-dev,pkg-config,gdb "$VERSION_CODENAME" "$archive.part"
  mv "$archive.part" "$archive"
fi
mkdir -p "$root"
tar -C "$root" -xf "$archive" --exclude='./dev/*'
mkdir "$root/packages"
cp "$@" "$root/packages"

cat >"$root/try" <<'INSIDE'
#!/bin/sh
set -eu
listed() { find / -xdev -path /proc -prune -o -path /sys -prune -o -path /tmp -prune -o -path /packages -prune \
  -o -path /var/log -prune -o -path /var/cache -prune -o -path /var/lib/dpkg -prune -o -path /var/lib/apt -prune -o -print | sort; }
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
listed >/tmp/before
apt-get -qq install -y /packages/*.deb </dev/null >/tmp/apt 2>&1 || { cat /tmp/apt; exit 1; }

mkdir /tmp/work && chown nobody /tmp/work && cd /tmp/work
as_nobody() { setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME=/tmp/work "$@"; }
as_nobody isochrone --version
as_nobody isochrone machine >machine.txt && head -n 3 machine.txt
as_nobody isochrone map --quick >map.txt && tail -n 2 map.txt
as_nobody isochrone run --report -- true 2>&1 | head -n 2
as_nobody isochrone bench --help >/dev/null
man isochrone >man.txt
grep -q latency man.txt
man isochrone-map >man.txt
grep -q -e --quick man.txt
bash -n /usr/share/bash-completion/completions/isochrone
cc -Wall -Werror -std=c99 /usr/share/doc/isochrone/examples/atlas.c $(pkg-config --cflags --libs isochrone) -o atlas
as_nobody ./atlas
ldconfig -p >libraries.txt
grep -q libisochrone.so.0 libraries.txt

# What debuggers read is found from where the package puts it: function and line of a frame in a running program. What
# is preloaded always has lines, the command where its profile has any.
frame_in() { # FUNCTION gdb-command PROGRAM ...
  function=$1 first=$2
  shift 2
  gdb -batch -nx -ex 'set startup-with-shell off' -ex 'set breakpoint pending on' -ex "$first" -ex "break $function" \
    -ex run -ex 'backtrace 1' --args "$@" 2>&1 | grep "^#0  .*$function .* at .*:[0-9][0-9]*$"
}
frame_in first_malloc 'set environment LD_PRELOAD /usr/lib/libisochrone_malloc.so' /bin/ls / ||
  { echo "gdb sees no line of a frame in libisochrone_malloc.so"; exit 1; }
lines_of() { gdb -batch -nx -ex "info line $2" "$1" 2>&1 | grep -o 'Line [0-9]* of "[^"]*"'; }
lines_of /usr/lib/libisochrone_malloc.so place_malloc
frame_in dispatch 'show version' /usr/bin/isochrone machine || echo "this build of the command has no lines for debuggers"

cd /
apt-get -qq remove -y isochrone isochrone-dbgsym </dev/null >/tmp/apt 2>&1 || { cat /tmp/apt; exit 1; }
listed >/tmp/after
if ! diff /tmp/before /tmp/after; then echo "removed, and something is left or gone"; exit 1; fi
echo "installed, used and removed; nothing is left"
INSIDE

status=0
unshare --mount --pid --fork --kill-child sh -eu -c '
  mount -t proc proc "$1/proc"
  mount --rbind /sys "$1/sys"
  mount --rbind /dev "$1/dev"
  exec chroot "$1" sh /try' try "$root" || status=$?
rm -rf --one-file-system "$root"
exit "$status"
