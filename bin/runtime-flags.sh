# What every Node of the collector is started with: sourced by bin/collector-node, and by /usr/bin/collector of the package.
# A reading lives for a tenth of a second, and the collector beside other programs on a small box. Measured with `npm run bench e2e`:
# --scavenger-max-new-space-capacity-mb=2: Node 24 answers short-lived buffers with full collections otherwise, and the collections of what is
# new take longer; workers that make much of it have 8 (src/lib/thread/host.ts). How heaps grow is set at run time (src/lib/heap.ts).
# V8's memory reducer starts full collections where little is allocated: after a start they give back 10 to 15 MiB, later they cost 5 to 9 % of
# the CPU for 1 to 5 MiB, and src/lib/heap.ts ends it.
# --use-system-ca: an authority that this machine trusts (update-ca-certificates) is trusted beside Node's own, by whatever names none.
# --disable-sigusr1: a signal opens Node's debugger otherwise, through which the process can be made to do anything (src/lib/launch.ts).
flags="--disable-sigusr1 --use-system-ca --scavenger-max-new-space-capacity-mb=2"
# glibc keeps freed memory in a pool for each thread otherwise. One pool for all is enough, because JavaScript seldom asks for memory
# outside its heap; what is at the end of it, and large pieces, are given back. Not below 128 KiB: a read from a socket takes 64.
export MALLOC_ARENA_MAX=1 MALLOC_TRIM_THRESHOLD_=262144 MALLOC_MMAP_THRESHOLD_=131072
