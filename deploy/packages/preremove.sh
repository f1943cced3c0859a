#!/bin/sh
# dpkg says "remove" or "upgrade", rpm how many versions stay: only the last one stops the service.
set -e
case "$1" in
remove | 0)
	if [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then
		systemctl disable --now tocsin.service
	fi
	;;
esac
