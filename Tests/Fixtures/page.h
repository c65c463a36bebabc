// The page size of the machine on which the program will run. HibernationTests gives it. Without
// it, the size is a multiple of every page size that the processor may have.
#ifndef PAGE_BYTES
#ifdef __x86_64__
#define PAGE_BYTES 4096
#else
#define PAGE_BYTES 65536
#endif
#endif
