#!/bin/sh
set -eu
echo "oha=$(oha --version | sed 's/^[^0-9]*//')"
echo "nginx=$(nginx -v 2>&1 | sed 's/^[^0-9]*\([0-9.]*\).*/\1/')"
echo "socat=$(socat -V | sed -n 's/^socat version \([^ ]*\).*/\1/p')"
echo "iperf3=$(iperf3 --version | sed -n 's/^iperf \([^ ]*\).*/\1/p')"
