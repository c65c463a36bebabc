// A program of each kind that can't be hibernated, and some near to it that can.
//
//   ineligible KIND      prints `ready`, or `unavailable WHY` if this machine doesn't permit it
//
// On stdin, a line each: `check` answers `fine` if its resources still work and have the right
// content, else the error. End of input ends it.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "page.h"

enum { PAGE = PAGE_BYTES, AREA = 16 * PAGE, HUGE = 2 << 20 };

// Raw calls: this process may be under a strict seccomp filter.
static void say(const char *line) {
  char text[256];
  int length = snprintf(text, sizeof text, "%s\n", line);
  if (write(1, text, (size_t)length) != length) _exit(3);
}

static void unavailable(const char *call) {
  char text[200];
  snprintf(text, sizeof text, "unavailable %s: %s", call, strerror(errno));
  say(text);
  _exit(0);
}

static unsigned char *area(size_t length, int flags) {
  int kind = MAP_PRIVATE | MAP_ANONYMOUS | flags;
  unsigned char *at = mmap(NULL, length, PROT_READ | PROT_WRITE, kind, -1, 0);
  if (at == MAP_FAILED) unavailable("mmap");
  for (size_t i = 0; i < length; i++) at[i] = (unsigned char)(i * 7 + i / PAGE);
  return at;
}

static const char *area_is_right(const unsigned char *at, size_t from, size_t length) {
  for (size_t i = from; i < length; i++)
    if (at[i] != (unsigned char)(i * 7 + i / PAGE)) return "its memory has changed";
  return "fine";
}

// MARK: io_uring, without a library

static struct {
  int fd;
  unsigned flags;  // of io_uring_enter
  unsigned char *rings;
  struct io_uring_sqe *entries;
  struct io_uring_params p;
} ring;

static void open_ring(void) {
  ring.fd = (int)syscall(SYS_io_uring_setup, 8, &ring.p);
  if (ring.fd < 0) unavailable("io_uring_setup");
  size_t length = ring.p.sq_off.array + ring.p.sq_entries * sizeof(unsigned);
  size_t other = ring.p.cq_off.cqes + ring.p.cq_entries * sizeof(struct io_uring_cqe);
  ring.rings = mmap(NULL, length > other ? length : other, PROT_READ | PROT_WRITE, MAP_SHARED,
                    ring.fd, IORING_OFF_SQ_RING);
  ring.entries = mmap(NULL, ring.p.sq_entries * sizeof *ring.entries, PROT_READ | PROT_WRITE,
                      MAP_SHARED, ring.fd, IORING_OFF_SQES);
  if (ring.rings == MAP_FAILED || (void *)ring.entries == MAP_FAILED) unavailable("mmap of a ring");
}

// The program's own memory is the ring's: the kernel has pinned it and writes to it.
static void open_unmapped_ring(void) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  ring.rings = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (ring.rings == MAP_FAILED) unavailable("mmap");
  ring.entries = (struct io_uring_sqe *)(ring.rings + PAGE);
  // The addresses are the last fields of these structures; older headers have no names for them.
  memcpy((char *)(&ring.p.cq_off + 1) - sizeof ring.rings, &ring.rings, sizeof ring.rings);
  memcpy((char *)(&ring.p.sq_off + 1) - sizeof ring.entries, &ring.entries, sizeof ring.entries);
  ring.p.flags = 1 << 14;  // IORING_SETUP_NO_MMAP (Linux 6.5)
  ring.fd = (int)syscall(SYS_io_uring_setup, 8, &ring.p);
  if (ring.fd < 0) unavailable("io_uring_setup");
}

static unsigned *word(unsigned offset) { return (unsigned *)(ring.rings + offset); }

// Submits one request, and waits for `wait` completions; the last one's result.
static int submit(struct io_uring_sqe request, unsigned wait) {
  unsigned tail = *word(ring.p.sq_off.tail), index = tail & *word(ring.p.sq_off.ring_mask);
  ring.entries[index] = request;
  word(ring.p.sq_off.array)[index] = index;
  __atomic_store_n(word(ring.p.sq_off.tail), tail + 1, __ATOMIC_RELEASE);
  unsigned flags = ring.flags | (wait ? IORING_ENTER_GETEVENTS : 0);
  if (syscall(SYS_io_uring_enter, ring.fd, 1, wait, flags, NULL, 0) < 0) return -errno;
  int result = 0;
  while (wait-- > 0) {
    unsigned head = *word(ring.p.cq_off.head);
    if (head == __atomic_load_n(word(ring.p.cq_off.tail), __ATOMIC_ACQUIRE)) return -EAGAIN;
    struct io_uring_cqe *done = (struct io_uring_cqe *)(ring.rings + ring.p.cq_off.cqes);
    result = done[head & *word(ring.p.cq_off.ring_mask)].res;
    __atomic_store_n(word(ring.p.cq_off.head), head + 1, __ATOMIC_RELEASE);
  }
  return result;
}

static unsigned char *bytes;
static int ends[2];

static void register_buffers(void) {
  if (!bytes) bytes = area(AREA, 0);
  struct iovec buffer = {bytes, AREA};
  if (syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_BUFFERS, &buffer, 1) < 0)
    unavailable("io_uring_register");
  if (pipe(ends)) unavailable("pipe");
}

// The ring is known to this thread by a number of its own; the descriptor isn't needed.
static void hide_ring(void) {
  struct io_uring_rsrc_update update = {.offset = -1U, .data = (uint64_t)ring.fd};
  if (syscall(SYS_io_uring_register, ring.fd, 20 /* IORING_REGISTER_RING_FDS */, &update, 1) < 0)
    unavailable("IORING_REGISTER_RING_FDS");
  close(ring.fd);
  ring.fd = (int)update.offset;
  ring.flags = 1 << 4;  // IORING_ENTER_REGISTERED_RING
}

// The kernel writes to the registered buffer, and the program must find it there.
static const char *read_fixed(void) {
  if (write(ends[1], "word", 4) != 4) return "write";
  struct io_uring_sqe request = {.opcode = IORING_OP_READ_FIXED, .fd = ends[0],
                                 .addr = (uint64_t)bytes, .len = 4};
  if (submit(request, 1) != 4) return "the read failed";
  if (memcmp(bytes, "word", 4)) return "what was read is somewhere else";
  return area_is_right(bytes, 4, AREA);
}

static const char *nothing_done(void) {
  struct io_uring_sqe request = {.opcode = IORING_OP_NOP};
  return submit(request, 1) == 0 ? area_is_right(bytes, 0, AREA) : "the ring doesn't work";
}

// A read that waits for data, in a thread of the kernel's or by a poll.
static void begin_read(unsigned char flags) {
  bytes = area(AREA, 0);
  if (pipe(ends)) unavailable("pipe");
  struct io_uring_sqe request = {.opcode = IORING_OP_READ, .fd = ends[0], .addr = (uint64_t)bytes,
                                 .len = 4, .flags = flags};
  int result = submit(request, 0);
  if (result < 0) errno = -result, unavailable("io_uring_enter");
}

static const char *end_read(void) {
  if (write(ends[1], "word", 4) != 4) return "write";
  struct io_uring_sqe request = {.opcode = IORING_OP_NOP};
  if (submit(request, 2) < 0) return "the read failed";
  if (memcmp(bytes, "word", 4)) return "what was read is somewhere else";
  return area_is_right(bytes, 4, AREA);
}

// MARK: others

static aio_context_t context;

static const char *aio_read(void) {
  int file = open("/proc/self/exe", O_RDONLY);
  struct iocb request = {.aio_lio_opcode = IOCB_CMD_PREAD, .aio_fildes = (uint32_t)file,
                         .aio_buf = (uint64_t)bytes, .aio_nbytes = 4};
  struct iocb *list[] = {&request};
  struct io_event event;
  long ok = syscall(SYS_io_submit, context, 1, list) == 1 &&
            syscall(SYS_io_getevents, context, 1, 1, &event, NULL) == 1;
  close(file);
  return ok && !memcmp(bytes, "\177ELF", 4) ? area_is_right(bytes, 4, AREA) : "the read failed";
}

static char stack[64 * 1024];
static volatile int shared_number;

static int sharer(void *unused) {
  while (!unused) {
    shared_number++;
    usleep(1000);
  }
  return 0;
}

static const char *still_counts(void) {
  int before = shared_number;
  for (int i = 0; i < 2000 && shared_number == before; i++) usleep(1000);
  return shared_number == before ? "the sharer doesn't run" : area_is_right(bytes, 0, AREA);
}

static void map_device(void) {
  glob_t places;
  const char *patterns[] = {"/dev/mem", "/dev/hpet", "/dev/fb0",
                            "/sys/bus/pci/devices/*/resource?"};
  for (int i = 0; i < 4; i++) glob(patterns[i], i ? GLOB_APPEND : 0, NULL, &places);
  for (size_t i = 0; i < places.gl_pathc; i++) {
    int fd = open(places.gl_pathv[i], O_RDONLY);
    off_t offset = strcmp(places.gl_pathv[i], "/dev/mem") ? 0 : 0xf0000;
    if (fd >= 0 && mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, offset) != MAP_FAILED) return;
  }
  unavailable("mmap of a device");
}

static volatile sig_atomic_t continued;
static void note_continued(int number) { continued = number; }

static const char *check(const char *kind) {
  if (!strncmp(kind, "uring-buffers", 13)) return read_fixed();
  if (!strcmp(kind, "uring-poll") || !strcmp(kind, "uring-worker")) return end_read();
  if (!strncmp(kind, "uring", 5)) return nothing_done();
  if (!strcmp(kind, "aio")) return aio_read();
  if (!strcmp(kind, "clone-vm")) return still_counts();
  if (!strcmp(kind, "hugetlb")) return area_is_right(bytes, 0, HUGE);
  return area_is_right(bytes, 0, AREA);
}

static void begin(const char *kind) {
  if (!strcmp(kind, "uring-unmapped")) open_unmapped_ring();
  else if (!strncmp(kind, "uring", 5)) open_ring();
  if (!strcmp(kind, "uring-buffers-later")) {
    signal(SIGCONT, note_continued);
    raise(SIGCONT);  // so that the stack is long enough for the next one
    continued = 0;
  } else if (!strncmp(kind, "uring-buffers", 13)) register_buffers();
  if (!strcmp(kind, "uring-buffers-hidden") || !strcmp(kind, "uring-hidden")) hide_ring();
  if (!strcmp(kind, "uring-poll")) return begin_read(0);
  if (!strcmp(kind, "uring-worker")) return begin_read(1 << 4 /* IOSQE_ASYNC */);
  if (!strcmp(kind, "hugetlb")) bytes = area(HUGE, MAP_HUGETLB);
  if (!bytes) bytes = area(AREA, 0);
  if (!strcmp(kind, "mlockall") && mlockall(MCL_CURRENT)) unavailable("mlockall");
  if (!strcmp(kind, "aio") && syscall(SYS_io_setup, 4, &context)) unavailable("io_setup");
  if (!strcmp(kind, "userfaultfd")) {
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
    struct uffdio_api api = {.api = UFFD_API};
    if (fd < 0 || ioctl(fd, UFFDIO_API, &api)) unavailable("userfaultfd");
  }
  if (!strcmp(kind, "secret")) {
    int fd = (int)syscall(447 /* memfd_secret */, 0);
    if (fd < 0 || ftruncate(fd, PAGE)) unavailable("memfd_secret");
    char *secret = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (secret == MAP_FAILED) unavailable("mmap of secret memory");
    strcpy(secret, "secret");
  }
  if (!strcmp(kind, "clone-vm")) {
    if (clone(sharer, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL) < 0) unavailable("clone");
  }
  if (!strcmp(kind, "device")) map_device();
}

int main(int count, char **arguments) {
  if (count != 2) return 2;
  const char *kind = arguments[1];
  begin(kind);
  if (!strcmp(kind, "vfork") && vfork() == 0) {
    // The parent waits for this one to end; it talks instead.
    say("ready");
    char line[64];
    while (read(0, line, sizeof line) > 0) say(check(kind));
    _exit(0);
  }
  say("ready");
  if (!strcmp(kind, "strict") && prctl(PR_SET_SECCOMP, 1 /* SECCOMP_MODE_STRICT */)) _exit(4);
  if (!strcmp(kind, "uring-buffers-later")) {
    // It computes until it was stopped and continued.
    while (!continued) {}
    register_buffers();
  }
  char line[64];
  while (read(0, line, sizeof line) > 0) say(check(kind));
  syscall(SYS_exit, 0);
}
