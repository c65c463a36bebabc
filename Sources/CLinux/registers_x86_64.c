#if defined(__x86_64__)
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/user.h>

#include "clinux_registers.h"
#include "clinux_waiting.h"

// The kernel's ERESTARTNOHAND: make the call again, but return EINTR if a signal handler runs
// first. The C library's headers don't have it, because no program ever sees it.
enum { RESTART_UNLESS_HANDLED = 514, RESTART_BY_BLOCK = 516 };

static struct user_regs_struct *native(struct clinux_registers *registers) {
  return (struct user_regs_struct *)registers->words;
}
static const struct user_regs_struct *native_const(const struct clinux_registers *registers) {
  return (const struct user_regs_struct *)registers->words;
}

int clinux_registers_supported(void) { return 1; }
uint32_t clinux_architecture(void) { return CLINUX_ARCHITECTURE_X86_64; }
int clinux_call_instruction_length(void) { return 2; }
int clinux_stop_hides_calls(void) { return 0; }

int clinux_registers_complete(pid_t thread, struct clinux_registers *registers) {
  (void)thread;
  // A 32-bit program has other registers.
  return registers->length == sizeof(struct user_regs_struct) ? 0 : -EIO;
}
uint64_t clinux_registers_settable(const struct clinux_registers *registers) {
  return registers->length;
}

int clinux_registers_are_like(const struct clinux_registers *one,
                              const struct clinux_registers *other) {
  return one->length == other->length && !memcmp(one->words, other->words, one->length);
}

// The registers themselves determine how the call continues, at any event stop.
int clinux_registers_leave_call(struct clinux_registers *registers) { (void)registers; return 0; }
int clinux_registers_interrupt_for_signal(struct clinux_registers *registers, int always) {
  (void)registers, (void)always;
  return 0;
}

int clinux_registers_in_syscall(const struct clinux_registers *registers) {
  return (int64_t)native_const(registers)->orig_rax >= 0;
}

int64_t clinux_registers_result(const struct clinux_registers *registers) {
  return (int64_t)native_const(registers)->rax;
}

// True for ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND and ERESTART_RESTARTBLOCK.
static int is_made_again(int64_t result) { return result >= -RESTART_BY_BLOCK && result <= -512; }

int clinux_registers_has_result(const struct clinux_registers *registers) {
  int64_t result = clinux_registers_result(registers);
  return clinux_registers_in_syscall(registers) && !is_made_again(result) && result != -EINTR;
}

uint64_t clinux_registers_instruction(const struct clinux_registers *registers) {
  return native_const(registers)->rip;
}

// A newborn thread is after the system call instruction of a fork. Any other entry to the kernel
// would have changed orig_rax.
int clinux_registers_newborn(const struct clinux_registers *registers) {
  const struct user_regs_struct *r = native_const(registers);
  int64_t call = (int64_t)r->orig_rax;
  return r->rax == 0 && (call == SYS_fork || call == SYS_clone || call == SYS_clone3);
}

// The C library's own block begins at `fs`. glibc's has 2.5 KB.
void clinux_registers_thread_block(const struct clinux_registers *registers, uint64_t *start,
                                   uint64_t *length) {
  *start = native_const(registers)->fs_base;
  *length = 2560;
}

int clinux_registers_restart_interrupted(struct clinux_registers *registers) {
  struct user_regs_struct *r = native(registers);
  if ((int64_t)r->orig_rax < 0 || (int64_t)r->rax != -EINTR) return 0;
  if (!clinux_may_be_made_again((int64_t)r->orig_rax)) return 0;
  r->rax = (uint64_t)(int64_t)-RESTART_UNLESS_HANDLED;
  return 1;
}

int clinux_registers_complete_call(struct clinux_registers *r, const struct clinux_call *before) {
  (void)r, (void)before;
  return 0;
}
int clinux_registers_call(const struct clinux_registers *registers, struct clinux_call *call) {
  const struct user_regs_struct *r = native_const(registers);
  int64_t result = (int64_t)r->rax;
  if ((int64_t)r->orig_rax < 0) return 0;
  *call = (struct clinux_call){
      .number = (int64_t)r->orig_rax,
      .arguments = {r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9},
      .stack = r->rsp,
      .instruction = r->rip,
      .is_made_again = is_made_again(result),
      .keeps_its_end = result == -RESTART_BY_BLOCK,
      .was_restarted = result == -RESTART_UNLESS_HANDLED,
  };
  return 1;
}

void clinux_registers_change_call(struct clinux_registers *registers, int64_t number, int argument,
                                  uint64_t value) {
  struct user_regs_struct *r = native(registers);
  r->orig_rax = (uint64_t)number;
  switch (argument) {
    case 0: r->rdi = value; return;
    case 1: r->rsi = value; return;
    case 2: r->rdx = value; return;
    case 3: r->r10 = value; return;
    case 4: r->r8 = value; return;
    case 5: r->r9 = value; return;
  }
}

void clinux_registers_end_call(struct clinux_registers *registers, int64_t result) {
  struct user_regs_struct *r = native(registers);
  // otherwise the kernel could make the call again because of its result
  r->orig_rax = (uint64_t)-1;
  r->rax = (uint64_t)result;
}

void clinux_registers_prepare_call(struct clinux_registers *registers, uint64_t instruction,
                                   int64_t number, const uint64_t arguments[6]) {
  struct user_regs_struct *r = native(registers);
  r->rip = instruction;
  r->orig_rax = (uint64_t)-1;  // otherwise the kernel treats the change as a restarted call
  r->rax = (uint64_t)number;
  r->rdi = arguments[0];
  r->rsi = arguments[1];
  r->rdx = arguments[2];
  r->r10 = arguments[3];
  r->r8 = arguments[4];
  r->r9 = arguments[5];
}

int clinux_trampoline_offsets(uint64_t *offsets, int capacity) {
  static const uint64_t inside[] = {0, 2, 4, 9, 11};
  if (capacity < 5) return -ENOSPC;
  memcpy(offsets, inside, sizeof inside);
  return 5;
}

void clinux_registers_park(struct clinux_registers *registers, uint64_t trampoline, int spins) {
  struct user_regs_struct *r = native(registers);
  r->rip = trampoline + (spins ? 2 : 4);
  r->orig_rax = (uint64_t)-1;  // otherwise the kernel treats the change as a restarted call
  r->rax = 0;
}

int64_t clinux_find_syscall_instruction(const void *code, int64_t length) {
  const uint8_t *bytes = code;
  for (int64_t i = 0; i + 1 < length; i++)
    if (bytes[i] == 0x0f && bytes[i + 1] == 0x05) return i;
  return -ENOENT;
}

int clinux_write_syscall_trampoline(void *code, int capacity) {
  static const uint8_t trampoline[] = {
      0x0f, 0x05,                         // 0: syscall
      0xeb, 0xfe,                         // 2: jmp .
      0xb8, SYS_pause, 0x00, 0x00, 0x00,  // 4: mov $SYS_pause, %eax
      0x0f, 0x05,                         // 9: syscall
      0xeb, 0xf7,                         // 11: jmp 4
  };
  if (capacity < (int)sizeof trampoline) return -ENOSPC;
  memcpy(code, trampoline, sizeof trampoline);
  return (int)sizeof trampoline;
}
#endif
