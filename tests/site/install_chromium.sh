#!/bin/sh
# Installs Debian's Chromium for the tests of the site, where that is allowed: as root, with apt.
# Elsewhere it says so and succeeds: the tests then skip with the same reason.
set -u
for name in chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null 2>&1 && exit 0
done
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "no Chromium, and only root can install it with apt: the tests of the site will be skipped"
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
install="apt-get install -qq -y --no-install-recommends chromium fonts-dejavu-core"
$install >/dev/null 2>&1 || { apt-get update -qq && $install >/dev/null; } ||
    echo "apt could not install Chromium: the tests of the site will be skipped"
