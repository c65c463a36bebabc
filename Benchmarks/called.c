// called ADDRESSES OUT PROGRAM ARGUMENT…: which functions does a program call? For
// scripts/order-code.
//
// Each address of the file (hexadecimal, sorted, one a line; a position-dependent executable) gets
// a breakpoint, which is removed at its first hit. SIGUSR1 sets those again that aren't in the next
// phase yet. OUT gets a line `ADDRESS PHASES` for each function that was called; phase N is bit N.
// What the program starts isn't followed.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t *addresses, low, high;
static unsigned char *hits, *text;
static int count, phase = 1;
static volatile sig_atomic_t next_phase;

static void begin_phase(int signal) {
  (void)signal;
  next_phase = 1;
}

static int find(uint64_t address) {
  int from = 0, to = count;
  while (from < to) {
    int middle = (from + to) / 2;
    if (addresses[middle] < address) from = middle + 1;
    else to = middle;
  }
  return from < count && addresses[from] == address ? from : -1;
}

static int memory(pid_t pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/mem", pid);
  int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) perror(path);
  return file;
}

static void set_breakpoints(pid_t pid) {
  int file = memory(pid);
  unsigned char *copy = malloc(high - low);
  memcpy(copy, text, high - low);
  for (int i = 0; i < count; i++)
    if (!(hits[i] & phase)) copy[addresses[i] - low] = 0xCC;
  for (uint64_t done = 0; done < high - low;) {
    ssize_t part = pwrite(file, copy + done, high - low - done, (off_t)(low + done));
    if (part <= 0) { perror("write"); break; }
    done += (uint64_t)part;
  }
  free(copy);
  close(file);
}

static void read_text(pid_t pid) {
  int file = memory(pid);
  for (uint64_t done = 0; done < high - low;) {
    ssize_t part = pread(file, text + done, high - low - done, (off_t)(low + done));
    if (part <= 0) { perror("read"); break; }
    done += (uint64_t)part;
  }
  close(file);
}

// 1: it was one of ours.
static int take_hit(pid_t pid) {
  struct user_regs_struct registers;
  if (ptrace(PTRACE_GETREGS, pid, 0, &registers)) return 0;
  int i = find(registers.rip - 1);
  if (i < 0) return 0;
  hits[i] |= (unsigned char)phase;
  int file = memory(pid);
  if (pwrite(file, &text[addresses[i] - low], 1, (off_t)addresses[i]) != 1) perror("write");
  close(file);
  registers.rip--;
  ptrace(PTRACE_SETREGS, pid, 0, &registers);
  return 1;
}

int main(int argc, char **argv) {
  if (argc < 4) return 64;
  FILE *file = fopen(argv[1], "r");
  addresses = malloc(sizeof *addresses << 20);
  while (file && count < 1 << 20 && fscanf(file, "%lx", &addresses[count]) == 1) count++;
  if (!count) return 66;
  low = addresses[0] & ~4095ull;
  high = (addresses[count - 1] + 4096) & ~4095ull;
  hits = calloc((size_t)count, 1);
  text = malloc(high - low);
  struct sigaction action = {.sa_handler = begin_phase};
  sigaction(SIGUSR1, &action, NULL);

  pid_t program = fork();
  if (program == 0) {
    raise(SIGSTOP);
    execv(argv[3], argv + 3);
    _exit(127);
  }
  int status, started = 0;
  waitpid(program, &status, WUNTRACED);
  if (ptrace(PTRACE_SEIZE, program, 0,
             PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC |
                 PTRACE_O_EXITKILL)) {
    perror("ptrace");
    return 70;
  }
  kill(program, SIGCONT);
  while (1) {
    pid_t pid = waitpid(-1, &status, __WALL);
    if (next_phase && started) {
      next_phase = 0;
      phase <<= 1;
      kill(program, SIGSTOP);
      if (pid < 0) pid = waitpid(-1, &status, __WALL);
      set_breakpoints(program);
      kill(program, SIGCONT);
    }
    if (pid < 0 && errno == EINTR) continue;
    if (pid < 0) break;
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      if (pid == program) break;
      continue;
    }
    int signal = WSTOPSIG(status), event = status >> 16;
    if (event == PTRACE_EVENT_EXEC && pid != program) {
      ptrace(PTRACE_DETACH, pid, 0, 0);
    } else if (event == PTRACE_EVENT_EXEC && !started) {
      read_text(pid);
      set_breakpoints(pid);
      started = 1;
      ptrace(PTRACE_CONT, pid, 0, 0);
    } else if (event == PTRACE_EVENT_STOP && signal == SIGSTOP) {
      if (ptrace(PTRACE_LISTEN, pid, 0, 0)) ptrace(PTRACE_CONT, pid, 0, 0);
    } else if (event || (signal == SIGTRAP && take_hit(pid))) {
      ptrace(PTRACE_CONT, pid, 0, 0);
    } else {
      ptrace(PTRACE_CONT, pid, 0, signal);
    }
  }
  file = fopen(argv[2], "w");
  for (int i = 0; i < count; i++)
    if (hits[i]) fprintf(file, "%lx %d\n", addresses[i], hits[i]);
  return fclose(file) ? 74 : 0;
}
