# What every Node of the collector is started with: sourced by bin/collector-node, and by /usr/bin/collector of the package.
# A reading lives for a tenth of a second, and the collector beside other programs on a small box. Measured with `npm run bench e2e`:
# --max-semi-space-size=1 keeps the young generation at 1 MiB (Node 24 answers short-lived buffers with full collections if it may grow),
# --heap-growing-percent=30 collects an old generation that has grown by so much, instead of doubling it.
flags="--max-semi-space-size=1 --heap-growing-percent=30"
# glibc keeps freed memory for each thread otherwise: two pools for all, and pieces above 64 KiB are given back at once.
export MALLOC_ARENA_MAX=2 MALLOC_TRIM_THRESHOLD_=131072 MALLOC_MMAP_THRESHOLD_=65536
