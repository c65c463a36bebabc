// A victim that notices everything: every kind of private memory, a thread in every kind of
// blocking system call, and checksums over all of it.
//
//   torture MEGABYTES THREADS SEED        prints `ready PID` once every thread is blocked
//
// One command a line on stdin, one line on stdout for each:
//   sum         sum HEX64           over all regions, stacks, thread-locals, signal masks
//   wake        woke N eintr M      every thread woken by its own mechanism, and blocked again
//   touch SEED  touched N           rewrites the same N pages and blocks for the same seed
//   grow MB     grown MB            new heap and a new mapping
//   collapse    collapse asked      the kernel makes huge pages where it can, now
//   detail FILE detailed            a line for each page: where, its checksum, its first word
//   errors      errors N eintr M …  anything unexpected so far, with details
//   quit        bye                 (end of input does the same, without the line)
// A thread that doesn't answer within 10 s gives `error unanswered KIND`. The same arguments
// and commands give the same sums in every run of the same binary: a test may compare runs.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, MAX_REGIONS = 64, MAX_THREADS = 256, MAX_BLOCKS = 1 << 20 };
enum { FRAMES = 24, FRAME_BYTES = 8000, ANSWER_SECONDS = 10 };

static void die(const char *what) {
  fprintf(stderr, "torture: %s: %s\n", what, strerror(errno));
  exit(2);
}

static int must(int result, const char *what) {
  if (result < 0) die(what);
  return result;
}

// ---- Patterns and checksums -------------------------------------------------------------

static uint64_t mix(uint64_t x) {  // splitmix64's finaliser
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

static void fill_random(void *at, size_t bytes, uint64_t seed) {
  unsigned char *to = at;
  for (size_t i = 0; i < bytes; i += 8) {
    uint64_t word = mix(seed + i);
    memcpy(to + i, &word, bytes - i < 8 ? bytes - i : 8);
  }
}

// A quarter zeros, a quarter compressible, half random: roughly what heaps hold.
static void fill_page(void *at, size_t bytes, uint64_t seed) {
  switch (mix(seed) % 4) {
    case 0: memset(at, 0, bytes); break;
    case 1:
      for (size_t i = 0; i < bytes; i++) ((char *)at)[i] = "dormouse sleeps "[(i + seed) % 16];
      break;
    default: fill_random(at, bytes, seed);
  }
}

static uint64_t hash(uint64_t h, const void *at, size_t bytes) {
  const unsigned char *from = at;
  for (size_t i = 0; i < bytes; i += 8) {
    uint64_t word = 0;
    memcpy(&word, from + i, bytes - i < 8 ? bytes - i : 8);
    h = (h ^ word) * 0x9fb21c651e98df25u;
    h ^= h >> 32;
  }
  return h;
}

// ---- Regions ------------------------------------------------------------------------------

struct region {
  unsigned char *at;
  size_t bytes;
  int rest;  // the protection that it has while nobody looks
};
static struct region regions[MAX_REGIONS];
static int region_count;
static struct { unsigned char *at; uint32_t bytes; } blocks[MAX_BLOCKS];
static int block_count;

static void add_region(void *at, size_t bytes, int rest, uint64_t seed, size_t every) {
  if (region_count == MAX_REGIONS) die("too many regions");
  for (size_t p = 0; p < bytes / PAGE; p += every)
    fill_page((unsigned char *)at + p * PAGE, PAGE, seed + (uint64_t)region_count * 1000003 + p);
  if (mprotect(at, bytes, rest)) die("mprotect");
  regions[region_count++] = (struct region){at, bytes, rest};
}

static void *map(size_t bytes, int flags, int fd) {
  void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (at == MAP_FAILED) die("mmap");
  return at;
}

static void *map_anonymous(size_t bytes) { return map(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1); }

static void add_heap(size_t bytes, uint64_t seed) {
  for (size_t done = 0; done < bytes && block_count < MAX_BLOCKS; block_count++) {
    uint32_t size = 48 + mix(seed + block_count) % 8000;
    unsigned char *at = malloc(size);
    if (!at) die("malloc");
    fill_page(at, size, seed + block_count);
    blocks[block_count].at = at;
    blocks[block_count].bytes = size;
    done += size;
  }
}

// Two stretches with an inaccessible page between them, the second with a guard page inside its
// mapping where the kernel has those (6.13).
static void add_guarded(size_t bytes, uint64_t seed) {
  size_t half = bytes / 2 / PAGE * PAGE, quarter = half / 2 / PAGE * PAGE;
  unsigned char *at = map_anonymous(half * 2 + 2 * PAGE);
  if (mprotect(at + half, PAGE, PROT_NONE)) die("mprotect");
  unsigned char *second = at + half + PAGE;
  (void)madvise(second + quarter, PAGE, 102 /* MADV_GUARD_INSTALL */);
  int rw = PROT_READ | PROT_WRITE;
  add_region(at, half, rw, seed, 1);
  add_region(second, quarter, rw, seed, 1);
  add_region(second + quarter + PAGE, half - quarter, rw, seed, 1);
}

static void add_file(int fd, size_t bytes, uint64_t seed) {
  void *at = map(bytes, MAP_PRIVATE, fd);
  add_region(at, bytes, PROT_READ | PROT_WRITE, seed, 3);
  close(fd);
}

static void add_files(uint64_t seed) {
  int self = must(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "open /proc/self/exe");
  add_file(self, (size_t)lseek(self, 0, SEEK_END) / PAGE * PAGE, seed);
  char name[] = "/tmp/torture-XXXXXX";
  int fd = must(mkstemp(name), "mkstemp");
  unlink(name);
  unsigned char page[PAGE];
  for (int p = 0; p < 256; p++) {
    fill_page(page, PAGE, seed + 77 + p);
    if (write(fd, page, PAGE) != PAGE) die("write to the temporary file");
  }
  add_file(fd, 256 * PAGE, seed);
}

static void add_regions(size_t megabytes, uint64_t seed) {
  size_t bytes = megabytes << 20, eighth = bytes / 8, rw = PROT_READ | PROT_WRITE;
  add_heap(bytes / 4, seed);
  add_guarded(eighth, seed);
  add_region(map_anonymous(eighth), eighth, PROT_NONE, seed, 1);
  add_region(map_anonymous(eighth), eighth, PROT_READ, seed, 1);

  size_t huge = (bytes / 4 + (2 << 20) - 1) >> 21 << 21;
  unsigned char *at = map_anonymous(huge + (2 << 20));
  at = (unsigned char *)(((uintptr_t)at + (2 << 20) - 1) >> 21 << 21);
  (void)madvise(at, huge, MADV_HUGEPAGE);
  add_region(at, huge, rw, seed, 1);

  at = map_anonymous(eighth);
  if (madvise(at, eighth, MADV_DONTFORK)) die("madvise DONTFORK");
  add_region(at, eighth, rw, seed, 1);

  size_t sparse = 8 << 20;  // one page in 64: summing it maps the zero page into the others
  at = map_anonymous(sparse);
  (void)madvise(at, sparse, MADV_NOHUGEPAGE);
  add_region(at, sparse, rw, seed, 64);

  add_region(map(64 * PAGE, MAP_SHARED | MAP_ANONYMOUS, -1), 64 * PAGE, rw, seed, 1);
  add_files(seed);
}

static uint64_t sum_regions(uint64_t h) {
  for (int i = 0; i < region_count; i++) {
    struct region *r = &regions[i];
    int hidden = !(r->rest & PROT_READ);
    if (hidden && mprotect(r->at, r->bytes, PROT_READ)) die("mprotect");
    h = hash(h, r->at, r->bytes);
    if (hidden && mprotect(r->at, r->bytes, r->rest)) die("mprotect");
  }
  for (int i = 0; i < block_count; i++) h = hash(h, blocks[i].at, blocks[i].bytes);
  return h;
}

// To find what differs from another run of the same commands.
static void detail(const char *path) {
  FILE *file = fopen(path, "we");
  if (!file) die(path);
  for (int i = 0; i < region_count; i++) {
    struct region *r = &regions[i];
    int hidden = !(r->rest & PROT_READ);
    if (hidden && mprotect(r->at, r->bytes, PROT_READ)) die("mprotect");
    for (size_t p = 0; p < r->bytes / PAGE; p++) {
      unsigned char *page = r->at + p * PAGE;
      fprintf(file, "region %d page %zu: %016llx, begins %016llx @%p\n", i, p,
              (unsigned long long)hash(1, page, PAGE), *(unsigned long long *)page, (void *)page);
    }
    if (hidden && mprotect(r->at, r->bytes, r->rest)) die("mprotect");
  }
  for (int i = 0; i < block_count; i++)
    fprintf(file, "block %d: %016llx @%p\n", i,
            (unsigned long long)hash(1, blocks[i].at, blocks[i].bytes), (void *)blocks[i].at);
  fclose(file);
}

static int touch_regions(uint64_t seed) {
  int touched = 0;
  for (int i = 0; i < region_count; i++) {
    struct region *r = &regions[i];
    if (mprotect(r->at, r->bytes, PROT_READ | PROT_WRITE)) die("mprotect");
    for (size_t p = mix(seed + i) % 7; p < r->bytes / PAGE; p += 7, touched++)
      fill_page(r->at + p * PAGE, PAGE, mix(seed) + p);
    if (mprotect(r->at, r->bytes, r->rest)) die("mprotect");
  }
  for (int i = (int)(mix(seed) % 5); i < block_count; i += 5, touched++)
    fill_page(blocks[i].at, blocks[i].bytes, mix(seed) + i);
  return touched;
}

// ---- Threads: a stack and thread-locals of their own, and one way of being blocked ----------

struct frame { struct frame *up; unsigned char bytes[FRAME_BYTES]; };
static _Thread_local unsigned char thread_local_bytes[64 << 10];

enum request { NOTHING, WAKE, SUM, TOUCH };

struct victim {
  int index, kind;
  uint64_t seed;
  pthread_t thread;
  _Atomic pid_t tid;
  int fd, other;  // what it waits on, and where main pokes it
  int port;
  pthread_mutex_t lock;
  pthread_cond_t condition;
  _Atomic int request, requested, answered;
  uint64_t touch_seed, sum;
  _Atomic int eintr, errors;
  int last_result, last_errno;
};
static struct victim victims[MAX_THREADS];
static int victim_count;
static _Atomic int main_eintr;
static int semaphores = -1;
static _Thread_local volatile sig_atomic_t signals_seen;

static void on_signal(int number) { (void)number; signals_seen++; }

static void unexpected(struct victim *v, int result, int error) {
  if (result < 0 && error == EINTR) {
    v->eintr++;
    return;
  }
  v->last_result = result;
  v->last_errno = error;
  v->errors++;
}

static uint64_t sum_thread(const struct frame *top) {
  uint64_t h = hash(1, thread_local_bytes, sizeof thread_local_bytes);
  for (; top; top = top->up) h = hash(h, top->bytes, FRAME_BYTES);
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  uint64_t bits = 0;
  for (int s = 1; s <= 31; s++) bits |= (uint64_t)sigismember(&mask, s) << s;
#ifdef __x86_64__
  bits |= (uint64_t)(__builtin_ia32_stmxcsr() & 0x6000) << 32;
#endif
  return hash(h, &bits, sizeof bits);
}

static void touch_thread(struct frame *top, uint64_t seed) {
  for (size_t at = 0; at < sizeof thread_local_bytes; at += 3 * 1024)
    fill_random(thread_local_bytes + at, 512, seed + at);
  for (int i = 0; top; top = top->up, i++)
    if (i % 3 == 0) fill_random(top->bytes, FRAME_BYTES / 2, seed + 5000 + i);
}

// The one blocking call of the kind. True: woken the way it should be.
static int block_epoll(struct victim *v, int timeout) {
  struct epoll_event event;
  int n = epoll_wait(v->other, &event, 1, timeout);
  if (n == 0 && timeout >= 0) return 0;
  if (n != 1) return unexpected(v, n, errno), 0;
  uint64_t count;
  return read(v->fd, &count, 8) == 8;
}
static int block_epoll_forever(struct victim *v) { return block_epoll(v, -1); }
static int block_epoll_timeout(struct victim *v) { return block_epoll(v, 200); }

static int block_futex(struct victim *v) {
  pthread_mutex_lock(&v->lock);
  while (v->requested == v->answered) {
    int error = pthread_cond_wait(&v->condition, &v->lock);
    if (error) unexpected(v, -1, error);
  }
  pthread_mutex_unlock(&v->lock);
  return 1;
}

static int block_accept(struct victim *v) {
  int fd = accept(v->fd, NULL, NULL);
  if (fd < 0) return unexpected(v, fd, errno), 0;
  close(fd);
  return 1;
}

static int block_nanosleep(struct victim *v) {
  struct timespec brief = {0, 20 * 1000 * 1000};
  int result = nanosleep(&brief, NULL);
  if (result) unexpected(v, result, errno);
  return v->requested != v->answered;
}

static int block_read(struct victim *v, size_t bytes) {
  uint64_t word;
  ssize_t n = read(v->fd, &word, bytes);
  if (n != (ssize_t)bytes) return unexpected(v, (int)n, errno), 0;
  return v->requested != v->answered;
}
static int block_pipe(struct victim *v) { return block_read(v, 1); }
static int block_eventfd(struct victim *v) { return block_read(v, 8); }
static int block_timerfd(struct victim *v) { return block_read(v, 8); }

static int block_poll(struct victim *v) {
  struct pollfd one = {.fd = v->fd, .events = POLLIN};
  int n = poll(&one, 1, -1);
  if (n != 1 || one.revents != POLLIN) return unexpected(v, n, errno), 0;
  return block_read(v, 1);
}

static int block_select(struct victim *v) {
  fd_set set;
  FD_ZERO(&set);
  FD_SET(v->fd, &set);
  int n = select(v->fd + 1, &set, NULL, NULL, NULL);
  if (n != 1 || !FD_ISSET(v->fd, &set)) return unexpected(v, n, errno), 0;
  return block_read(v, 1);
}

static int block_semop(struct victim *v) {
  struct sembuf take = {.sem_num = (unsigned short)v->index, .sem_op = -1};
  int result = semop(semaphores, &take, 1);
  if (result) unexpected(v, result, errno);
  return result == 0;
}

static int block_sigtimedwait(struct victim *v) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  struct timespec limit = {1, 0};
  int result = sigtimedwait(&set, NULL, &limit);
  if (result < 0 && errno == EAGAIN) return 0;
  if (result != SIGUSR1) unexpected(v, result, errno);
  return result == SIGUSR1;
}

static int block_receive(struct victim *v) {
  char byte;
  ssize_t n = recv(v->fd, &byte, 1, 0);
  if (n < 0 && errno == EAGAIN) return 0;
  if (n != 1) unexpected(v, (int)n, errno);
  return n == 1;
}

static int block_pause(struct victim *v) {
  int before = signals_seen, result = pause();
  if (signals_seen == before) return unexpected(v, result, errno), 0;
  return 1;
}

static void poke_eventfd(struct victim *v) {
  uint64_t one = 1;
  if (write(v->fd, &one, 8) != 8) unexpected(v, -1, errno);
}
static void poke_other(struct victim *v) {
  if (write(v->other, "!", 1) != 1) unexpected(v, -1, errno);
}
static void poke_condition(struct victim *v) {
  pthread_mutex_lock(&v->lock);
  pthread_cond_signal(&v->condition);
  pthread_mutex_unlock(&v->lock);
}
static void poke_connect(struct victim *v) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)v->port)};
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(fd, (struct sockaddr *)&to, sizeof to)) unexpected(v, -1, errno);
  close(fd);
}
static void poke_nothing(struct victim *v) { (void)v; }  // it looks by itself
static void poke_semaphore(struct victim *v) {
  struct sembuf give = {.sem_num = (unsigned short)v->index, .sem_op = 1};
  if (semop(semaphores, &give, 1)) unexpected(v, -1, errno);
}
static void poke_usr1(struct victim *v) { pthread_kill(v->thread, SIGUSR1); }
static void poke_usr2(struct victim *v) { pthread_kill(v->thread, SIGUSR2); }

static const struct kind {
  const char *name;
  int (*block)(struct victim *);
  void (*poke)(struct victim *);
} kinds[] = {
  {"epoll", block_epoll_forever, poke_eventfd},
  {"futex", block_futex, poke_condition},
  {"accept", block_accept, poke_connect},
  {"nanosleep", block_nanosleep, poke_nothing},
  {"pipe", block_pipe, poke_other},
  {"poll", block_poll, poke_other},
  {"select", block_select, poke_other},
  {"semop", block_semop, poke_semaphore},
  {"sigtimedwait", block_sigtimedwait, poke_usr1},
  {"recvtimeo", block_receive, poke_other},
  {"epolltimeout", block_epoll_timeout, poke_eventfd},
  {"eventfd", block_eventfd, poke_eventfd},
  {"timerfd", block_timerfd, poke_nothing},
  {"pause", block_pause, poke_usr2},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static void prepare_pair(struct victim *v, int is_socket) {
  int ends[2];
  must(is_socket ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)
                 : pipe2(ends, O_CLOEXEC), "pipe");
  v->fd = ends[0];
  v->other = ends[1];
  struct timeval limit = {.tv_usec = 300 * 1000};
  if (is_socket && setsockopt(v->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit))
    die("SO_RCVTIMEO");
}

static void prepare_listener(struct victim *v) {
  v->fd = must(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
  struct sockaddr_in here = {.sin_family = AF_INET};
  socklen_t length = sizeof here;
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  must(bind(v->fd, (struct sockaddr *)&here, length), "bind");
  must(listen(v->fd, 8), "listen");
  must(getsockname(v->fd, (struct sockaddr *)&here, &length), "getsockname");
  v->port = ntohs(here.sin_port);
}

static void prepare(struct victim *v) {
  int (*block)(struct victim *) = kinds[v->kind].block;
  pthread_mutex_init(&v->lock, NULL);
  pthread_cond_init(&v->condition, NULL);
  if (block == block_epoll_forever || block == block_epoll_timeout) {
    v->fd = must(eventfd(0, EFD_CLOEXEC), "eventfd");
    v->other = must(epoll_create1(EPOLL_CLOEXEC), "epoll_create1");
    struct epoll_event event = {.events = EPOLLIN};
    must(epoll_ctl(v->other, EPOLL_CTL_ADD, v->fd, &event), "epoll_ctl");
  } else if (block == block_eventfd) {
    v->fd = must(eventfd(0, EFD_CLOEXEC), "eventfd");
  } else if (block == block_timerfd) {
    struct itimerspec often = {{0, 100 * 1000 * 1000}, {0, 100 * 1000 * 1000}};
    v->fd = must(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC), "timerfd_create");
    must(timerfd_settime(v->fd, 0, &often, NULL), "timerfd_settime");
  } else if (block == block_accept) {
    prepare_listener(v);
  } else if (block == block_pipe || block == block_poll || block == block_select) {
    prepare_pair(v, 0);
  } else if (block == block_receive) {
    prepare_pair(v, 1);
  }
}

static void serve(struct victim *v, struct frame *top) {
  for (;;) {
    if (!kinds[v->kind].block(v)) continue;
    if (v->requested == v->answered) {
      unexpected(v, 0, 0);  // woken by nobody
      continue;
    }
    if (v->request == SUM) v->sum = sum_thread(top);
    if (v->request == TOUCH) touch_thread(top, v->touch_seed + (uint64_t)v->index);
    v->answered = v->requested;
  }
}

static void protocol(struct frame *top, size_t megabytes);

// Goes FRAMES deep, filling each frame, and runs the thread's life at the bottom.
__attribute__((noinline)) static void dive(
    struct victim *v, struct frame *up, int depth, uint64_t seed, size_t megabytes) {
  struct frame here = {.up = up};
  fill_random(here.bytes, FRAME_BYTES, seed + 100000 + (uint64_t)depth);
  if (depth + 1 < FRAMES) dive(v, &here, depth + 1, seed, megabytes);
  else if (v) serve(v, &here);
  else protocol(&here, megabytes);
  __asm__ volatile("" : : "r"(&here) : "memory");  // the frame must outlive the calls
}

static void *thread_main(void *argument) {
  struct victim *v = argument;
  v->tid = (pid_t)syscall(SYS_gettid);
  fill_random(thread_local_bytes, sizeof thread_local_bytes, v->seed);
#ifdef __x86_64__  // a rounding mode of its own
  __builtin_ia32_ldmxcsr((__builtin_ia32_stmxcsr() & ~0x6000u) | (unsigned)(v->index % 4) << 13);
#endif
  if (kinds[v->kind].block == block_pause) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
  }
  dive(v, NULL, 0, v->seed, 0);
  return NULL;
}

// ---- Main: asks the threads, by their own mechanisms ----------------------------------------

static void brief_sleep(void) {
  struct timespec brief = {0, 500 * 1000};
  nanosleep(&brief, NULL);
}

// In its system call, and not merely in a lock's.
static int is_blocked(struct victim *v) {
  char path[64], line[64] = "";
  snprintf(path, sizeof path, "/proc/self/task/%d/syscall", v->tid);
  FILE *file = fopen(path, "re");
  if (!file) return v->tid != 0;  // not to be seen here: believe it
  char *got = fgets(line, sizeof line, file);
  fclose(file);
  if (!got || line[0] < '0' || line[0] > '9') return 0;
  return atoi(line) != SYS_futex || kinds[v->kind].block == block_futex;
}

// The kind that didn't answer or didn't block in time; NULL when all did.
static const char *await_all(void) {
  // In naps of its own: it may be hibernated for longer than that meanwhile.
  int patience = ANSWER_SECONDS * 1000;
  for (int i = 0; i < victim_count; i++)
    while (victims[i].answered != victims[i].requested || !is_blocked(&victims[i])) {
      if (patience-- == 0) return kinds[victims[i].kind].name;
      brief_sleep();
    }
  return NULL;
}

static int ask_all(enum request request, uint64_t seed) {
  for (int i = 0; i < victim_count; i++) {
    struct victim *v = &victims[i];
    v->request = request;
    v->touch_seed = seed;
    pthread_mutex_lock(&v->lock);
    v->requested++;
    pthread_mutex_unlock(&v->lock);
    kinds[v->kind].poke(v);
  }
  const char *late = await_all();
  if (late) printf("error unanswered %s\n", late);
  return late == NULL;
}

static int total_eintr(void) {
  int n = main_eintr;
  for (int i = 0; i < victim_count; i++) n += victims[i].eintr;
  return n;
}

static void report_errors(void) {
  int errors = 0;
  for (int i = 0; i < victim_count; i++) errors += victims[i].errors;
  printf("errors %d eintr %d", errors, total_eintr());
  for (int i = 0; i < victim_count; i++) {
    struct victim *v = &victims[i];
    if (v->eintr) printf(" %s:eintr=%d", kinds[v->kind].name, v->eintr);
    if (v->errors)
      printf(" %s:errors=%d,rc=%d,errno=%d", kinds[v->kind].name, v->errors, v->last_result,
             v->last_errno);
  }
  printf("\n");
}

static int command(char *line, struct frame *top, size_t *megabytes) {
  char *argument = strchr(line, ' ');
  uint64_t number = argument ? strtoull(argument, NULL, 10) : 0;
  if (argument) *argument = 0;
  if (!strcmp(line, "quit")) return printf("bye\n"), 0;
  if (!strcmp(line, "errors")) {
    report_errors();
  } else if (!strcmp(line, "wake")) {
    if (ask_all(WAKE, 0)) printf("woke %d eintr %d\n", victim_count, total_eintr());
  } else if (!strcmp(line, "sum")) {
    if (!ask_all(SUM, 0)) return 1;
    uint64_t h = sum_regions(sum_thread(top));
    for (int i = 0; i < victim_count; i++) h = hash(h, &victims[i].sum, 8);
    printf("sum %016llx\n", (unsigned long long)h);
  } else if (!strcmp(line, "touch")) {
    if (!ask_all(TOUCH, number)) return 1;
    touch_thread(top, number + 999);
    printf("touched %d\n", touch_regions(number));
  } else if (!strcmp(line, "grow")) {
    size_t half = (size_t)number << 19;
    if (half == 0 || region_count == MAX_REGIONS) return printf("error grow\n"), 1;
    add_heap(half, number + 4242);
    add_region(map_anonymous(half), half, PROT_READ | PROT_WRITE, number + 4242, 1);
    printf("grown %zu\n", *megabytes += number);
  } else if (!strcmp(line, "detail")) {
    detail(argument ? argument + 1 : "/dev/null");
    printf("detailed\n");
  } else if (!strcmp(line, "collapse")) {
    for (int i = 0; i < region_count; i++)
      (void)madvise(regions[i].at, regions[i].bytes, 25 /* MADV_COLLAPSE */);
    printf("collapse asked\n");
  } else {
    printf("error unknown command\n");
  }
  return 1;
}

static void protocol(struct frame *top, size_t megabytes) {
  const char *late = await_all();
  if (late) printf("error not blocked %s\n", late);
  else printf("ready %d\n", getpid());
  fflush(stdout);
  char line[256];
  for (size_t used = 0;;) {
    ssize_t n = read(0, line + used, 1);
    if (n < 0 && errno == EINTR) main_eintr++;
    else if (n <= 0) return;
    else if (line[used] != '\n') used += used < sizeof line - 1;
    else {
      line[used] = 0;
      used = 0;
      int go_on = command(line, top, &megabytes);
      fflush(stdout);
      if (!go_on) return;
    }
  }
}

// ---- System V semaphores outlive a killed process: the next one sweeps them up -----------------

enum { KEY = 0x44000000, KEY_MASK = 0x7f000000 };

static void sweep_semaphores(void) {
  FILE *file = fopen("/proc/sysvipc/sem", "re");
  char line[256];
  while (file && fgets(line, sizeof line, file)) {
    int key, id;
    if (sscanf(line, "%d %d", &key, &id) != 2 || (key & KEY_MASK) != KEY) continue;
    pid_t owner = key & ~KEY_MASK;
    if (owner == getpid() || (kill(owner, 0) && errno == ESRCH)) semctl(id, 0, IPC_RMID);
  }
  if (file) fclose(file);
}

static void on_terminate(int number) {
  if (semaphores >= 0) semctl(semaphores, 0, IPC_RMID);
  raise(number);  // the default action, by SA_RESETHAND
}

static void make_semaphores(int count) {
  sweep_semaphores();
  semaphores = must(semget(KEY | getpid(), count, IPC_CREAT | IPC_EXCL | 0600), "semget");
  for (int i = 0; i < count; i++) must(semctl(semaphores, i, SETVAL, 0), "semctl");
}

static void set_signals(void) {
  struct sigaction on_usr2 = {.sa_handler = on_signal};
  sigaction(SIGUSR2, &on_usr2, NULL);
  struct sigaction on_term = {.sa_handler = on_terminate, .sa_flags = (int)SA_RESETHAND};
  sigaction(SIGTERM, &on_term, NULL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigaddset(&set, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &set, NULL);  // the threads inherit it
}

int main(int count, char **arguments) {
  int threads = count == 4 ? atoi(arguments[2]) : -1;
  size_t megabytes = count == 4 ? strtoul(arguments[1], NULL, 10) : 0;
  if (threads < 0 || threads > MAX_THREADS || megabytes < 1 || megabytes > 4096) {
    fprintf(stderr, "usage: torture MEGABYTES(1-4096) THREADS(0-%d) SEED\n", MAX_THREADS);
    return 64;
  }
  uint64_t seed = strtoull(arguments[3], NULL, 10);
  set_signals();
  if (threads > 0) make_semaphores(threads);
  add_regions(megabytes, seed);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 1 << 20);
  for (victim_count = 0; victim_count < threads; victim_count++) {
    struct victim *v = &victims[victim_count];
    v->index = victim_count;
    v->kind = victim_count % KINDS;
    v->seed = mix(seed + (uint64_t)victim_count);
    prepare(v);
    errno = pthread_create(&v->thread, &attributes, thread_main, v);
    if (errno) die("pthread_create");
  }
  fill_random(thread_local_bytes, sizeof thread_local_bytes, seed);
  dive(NULL, NULL, 0, seed, megabytes);
  if (semaphores >= 0) semctl(semaphores, 0, IPC_RMID);
  fflush(stdout);
  _exit(0);
}
