#!/bin/sh
# After an installation the service waits for its settings; after an update it restarts where it runs.
set -e
if [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart tocsin.service
fi
