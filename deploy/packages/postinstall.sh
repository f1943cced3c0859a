#!/bin/sh
# After an installation the service waits for its settings; after an update it restarts where it runs.
set -e
if [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	# The package is installed all the same: systemd tries again, and the administrator repairs what is wrong.
	if ! systemctl try-restart tocsin.service; then
		echo 'tocsin: the service did not restart; see: journalctl --unit tocsin' >&2
	fi
fi
