#!/bin/sh
# A shell sampler to compare guest sample with: one awk process a sample reads the
# same counters of any number of containers and prints one line.
# usage: sampler.sh SAMPLES SECONDS FILE...   the files to read, of all containers
set -eu
samples=$1 pause=$2
shift 2
n=0
while :; do
	awk '
	FNR == 1 { file++ }
	FILENAME == "/proc/uptime" { printf "{\"mono\":%d", $1 * 1000000000; next }
	FILENAME == "/proc/stat" {
		if ($1 == "cpu") printf ",\"total\":%d,\"idle\":%d,\"steal\":%d", $2 + $3 + $4 + $5 + $6 + $7 + $8 + $9, $5 + $6, $9
		else if ($1 ~ /^cpu/) printf ",\"%s_busy\":%d,\"%s_steal\":%d", $1, $2 + $3 + $4 + $7 + $8, $1, $9
		else nextfile
		next
	}
	FILENAME == "/proc/loadavg" { printf ",\"load1\":%s", $1; next }
	FILENAME ~ /cpu.stat$/ { if ($1 ~ /^(usage_usec|user_usec|system_usec|nr_periods|nr_throttled|throttled_usec|throttled_time)$/) printf ",\"%d_%s\":%s", file, $1, $2; next }
	FILENAME ~ /memory.stat$/ { if ($1 == "anon" || $1 == "total_rss") printf ",\"%d_anon\":%s", file, $2; next }
	FILENAME ~ /pressure$/ { sub("total=", "", $5); printf ",\"%d_%s\":%s", file, $1, $5; next }
	FILENAME ~ /io.stat$/ { for (i = 2; i <= NF; i++) { split($i, p, "="); sum[p[1]] += p[2] } next }
	FILENAME ~ /io_service_bytes/ { if ($2 == "Read" || $2 == "Write") sum[$2] += $3; next }
	NF == 1 { printf ",\"%d\":%s", file, $1 }
	END { for (k in sum) printf ",\"%s\":%d", k, sum[k]; print "}" }
	' /proc/uptime /proc/stat /proc/loadavg "$@"
	n=$((n + 1))
	[ "$n" -lt "$samples" ] || exit 0
	sleep "$pause"
done
