#!/bin/sh
# Install the named packages through apt, as root, without a question and without leaving a service running or enabled.
# Usage: apt_install.sh PACKAGE...
set -u
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
policy=/usr/sbin/policy-rc.d
mark="labconsole bootstrap: no service starts while packages are installed"
wanted=/etc/systemd/system/*.wants/*

# A policy that somebody else has set stays; one that an earlier, killed run of this script left behind does not.
if [ ! -e "$policy" ] || grep -q "$mark" "$policy"; then
    trap 'rm -f "$policy"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    printf '#!/bin/sh\n# %s\nexit 101\n' "$mark" > "$policy"
    chmod 755 "$policy"
fi
enabled_before=$(ls -d $wanted 2> /dev/null)

# What an interrupted installation has left half done is finished first. Old package lists may be good enough: when they
# are not, the installation says so.
dpkg --configure -a
apt-get -q update || echo "apt-get update failed: going on with the package lists that are here"
apt-get -q -o DPkg::Lock::Timeout=60 -o Dpkg::Use-Pty=0 install --yes --no-install-recommends "$@" || exit $?

# The tests start a broker of their own: the one that came with the package is not to start with the machine. Removing
# the link is what `systemctl disable` does, and works where systemd does not run.
for link in $(ls -d $wanted 2> /dev/null); do
    case "$enabled_before" in *"$link"*) continue ;; esac
    case "$link" in */rabbitmq-server.service | */epmd.*) rm -f "$link" ;; esac
done
case " $* " in
    *" rabbitmq-server "*) update-rc.d rabbitmq-server disable ;;
esac
