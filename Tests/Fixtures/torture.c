// A program that detects every change: it has every kind of private memory, a thread in every kind
// of blocking system call, and checksums over all of it.
//
//   torture MEGABYTES THREADS SEED        prints `ready PID` once every thread is blocked
//
// One command a line on stdin, one line on stdout for each; it ends with its input:
//   sum         sum HEX64           over all regions, stacks, thread-locals, signal masks
//   wake        woke N eintr M      every thread woken by its own mechanism, and blocked again
//   touch SEED  touched N           rewrites the same N pages and blocks for the same seed
//   collapse    collapse asked      the kernel makes huge pages where it can, now
//   detail FILE detailed            a line for each page: where, its checksum, its first word
//   errors      errors N eintr M …  anything unexpected so far, with details
// A thread that doesn't answer within 10 s gives `error unanswered KIND`. The same arguments and
// commands give the same sums in every run of the same binary: a test may compare runs.
//
// torture_memory.h has the memory, torture_threads.h the threads; here are the commands.
#define _GNU_SOURCE
#include "torture_memory.h"

#include "torture_threads.h"

static void protocol(struct frame *top);

// Recurses to a depth of FRAMES, fills each frame, and runs the thread's work at the bottom.
__attribute__((noinline)) static void dive(
    struct victim *v, struct frame *up, int depth, uint64_t seed) {
  struct frame here = {.up = up};
  fill_random(here.bytes, FRAME_BYTES, seed + 100000 + (uint64_t)depth);
  if (depth + 1 < FRAMES) dive(v, &here, depth + 1, seed);
  else if (v) serve(v, &here);
  else protocol(&here);
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
  dive(v, NULL, 0, v->seed);
  return NULL;
}

// ---- Main: asks the threads, by their own mechanisms ----------------------------------------

static void brief_sleep(void) {
  struct timespec brief = {0, 500 * 1000};
  nanosleep(&brief, NULL);
}

// Whether the thread is in its system call, and not in a lock's.
static int is_blocked(struct victim *v) {
  char path[64], line[64] = "";
  snprintf(path, sizeof path, "/proc/self/task/%d/syscall", v->tid);
  FILE *file = fopen(path, "re");
  if (!file) return v->tid != 0;  // unreadable here: assume it
  char *got = fgets(line, sizeof line, file);
  fclose(file);
  if (!got || line[0] < '0' || line[0] > '9') return 0;
  return atoi(line) != SYS_futex || kinds[v->kind].block == block_futex;
}

// The kind that didn't answer or didn't block in time; NULL when all did.
static const char *await_all(void) {
  // Counted in its own pauses: the process may be hibernated for longer than the limit meanwhile.
  int patience = ANSWER_SECONDS * 1000;
  for (int i = 0; i < victim_count; i++) {
    struct victim *v = &victims[i];
    while (v->answered != v->requested || !is_blocked(v)) {
      if (patience-- == 0) return kinds[v->kind].name;
      brief_sleep();
      // A signal that arrives just before pause(2) doesn't end it. After SIGSTOP and SIGCONT the
      // kernel makes the call once more, so this can happen with no hibernation, too.
      if (kinds[v->kind].block == block_pause && v->answered != v->requested && patience % 200 == 0)
        kinds[v->kind].poke(v);
    }
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

static void command(char *line, struct frame *top) {
  char *argument = strchr(line, ' ');
  uint64_t number = argument ? strtoull(argument, NULL, 10) : 0;
  if (argument) *argument = 0;
  if (!strcmp(line, "errors")) {
    report_errors();
  } else if (!strcmp(line, "wake")) {
    if (ask_all(WAKE, 0)) printf("woke %d eintr %d\n", victim_count, total_eintr());
  } else if (!strcmp(line, "sum")) {
    if (!ask_all(SUM, 0)) return;
    uint64_t h = sum_regions(sum_thread(top));
    for (int i = 0; i < victim_count; i++) h = hash(h, &victims[i].sum, 8);
    printf("sum %016llx\n", (unsigned long long)h);
  } else if (!strcmp(line, "touch")) {
    if (!ask_all(TOUCH, number)) return;
    touch_thread(top, number + 999);
    printf("touched %d\n", touch_regions(number));
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
}

static void protocol(struct frame *top) {
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
      command(line, top);
      fflush(stdout);
    }
  }
}

// ---- System V semaphores outlive a killed process: the next run removes them -----------------

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
  dive(NULL, NULL, 0, seed);
  if (semaphores >= 0) semctl(semaphores, 0, IPC_RMID);
  fflush(stdout);
  _exit(0);
}
