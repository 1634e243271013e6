# What every Node of the collector is started with: sourced by bin/collector-node, and by /usr/bin/collector of the package.
# A reading lives for a tenth of a second, and the collector beside other programs on a small box. Measured with `npm run bench e2e`:
# --memory-saver-mode collects a heap that has grown a little instead of letting it double; a thread whose work needs it otherwise turns
# it off (src/os/worker.ts). --scavenger-max-new-space-capacity-mb=8: Node 24 answers short-lived buffers with full collections otherwise.
flags="--memory-saver-mode --scavenger-max-new-space-capacity-mb=8"
# glibc keeps freed memory for each thread otherwise: two pools for all, and pieces above 64 KiB are given back at once.
export MALLOC_ARENA_MAX=2 MALLOC_TRIM_THRESHOLD_=131072 MALLOC_MMAP_THRESHOLD_=65536
