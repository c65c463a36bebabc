#ifndef CLINUX_REGISTERS_H
#define CLINUX_REGISTERS_H
#include <stdint.h>
#include <sys/types.h>

// A thread's general purpose registers as NT_PRSTATUS has them (27 words on x86-64, 34 on arm64),
// and the other values that determine how its call continues (arm64: 3 words). They are opaque to
// Swift: the meaning of a register differs by architecture, and is known only to
// registers_ARCHITECTURE.c. Floating point, vector and matrix registers and pointer authentication
// keys are never changed: no code of Dormouse runs in the process that would change them.
enum { CLINUX_REGISTER_WORDS = 40 };
struct clinux_registers {
  uint64_t words[CLINUX_REGISTER_WORDS];
  uint64_t length;  // bytes in use
};

// The architectures as an image names them. The numbers are part of the format.
enum {
  CLINUX_ARCHITECTURE_X86_64 = 0,
  CLINUX_ARCHITECTURE_ARM64 = 1,
  CLINUX_ARCHITECTURE_OTHER = 255,
};
uint32_t clinux_architecture(void);

// Returns 1 if injecting system calls is implemented for this architecture.
int clinux_registers_supported(void);
// Returns 1 if the thread was stopped inside a system call: its instruction pointer isn't in its
// own code.
int clinux_registers_in_syscall(const struct clinux_registers *registers);
// Returns the call's present result: -512 (ERESTARTSYS), -514, -516, -EINTR, or a plain result.
int64_t clinux_registers_result(const struct clinux_registers *registers);
// Returns 1 if the thread was stopped between the end of a system call and its own code. Then the
// call is over, and won't be made again when the thread continues. Returns 0 for EINTR, because a
// stop causes that, too.
int clinux_registers_has_result(const struct clinux_registers *registers);
// Restarts a call that a stop has interrupted. A stop makes some calls return EINTR although no
// handler ran (epoll_wait, semop, sigtimedwait, a receive with a timeout; signal(7)). If that has
// happened, this sets the result to the kernel's own ERESTARTNOHAND, which these calls would return
// if they were written today: the kernel decides when the thread continues. If a signal handler
// runs then, the call returns EINTR; otherwise it is made again. Returns 1 if it changed the
// registers.
int clinux_registers_restart_interrupted(struct clinux_registers *registers);
// A call that was interrupted.
struct clinux_call {
  int64_t number;
  uint64_t arguments[6];
  uint64_t stack;
  uint64_t instruction;
  int is_made_again;  // its result is one of the kernel's restart codes
  int keeps_its_end;  // ERESTART_RESTARTBLOCK: the kernel has stored when it ends
  // ERESTARTNOHAND; for some calls, clinux_registers_restart_interrupted has set it
  int was_restarted;
};
// On arm64 a call that returned EINTR for a stop has lost its first argument. `before` is the call
// in which the thread was before. Returns 1 if it is the same call; then the argument is restored
// from it.
int clinux_registers_complete_call(struct clinux_registers *registers,
                               const struct clinux_call *before);
// Reads the thread's call. Returns 0 if the thread isn't in a call.
int clinux_registers_call(const struct clinux_registers *registers, struct clinux_call *call);
// Sets the number and one argument of the call that will be made again.
void clinux_registers_change_call(struct clinux_registers *registers, int64_t number, int argument,
                                  uint64_t value);
// Ends the call: it isn't made again, and returns `result`.
void clinux_registers_end_call(struct clinux_registers *registers, int64_t result);
// Prepares a system call at `instruction`, the address of an instruction for it (x86-64 `syscall`,
// arm64 `svc #0`).
void clinux_registers_prepare_call(struct clinux_registers *registers, uint64_t instruction,
                                   int64_t number, const uint64_t arguments[6]);
uint64_t clinux_registers_instruction(const struct clinux_registers *registers);
// Returns 1 if the thread is the first of a child that has been forked and hasn't run an
// instruction yet.
int clinux_registers_newborn(const struct clinux_registers *registers);
// Returns the range of the C library's own block of the thread: its ID, its robust mutexes, its
// rseq area. *start is 0 if it has none.
void clinux_registers_thread_block(const struct clinux_registers *registers, uint64_t *start,
                                   uint64_t *length);

// Adds the values that NT_PRSTATUS doesn't have, for a stopped thread that this thread traces.
// Returns 0 or -errno.
int clinux_registers_complete(pid_t thread, struct clinux_registers *registers);
// Returns the number of bytes that NT_PRSTATUS accepts.
uint64_t clinux_registers_settable(const struct clinux_registers *registers);
// Returns 1 if both are the same state of a program.
int clinux_registers_are_like(const struct clinux_registers *one,
                              const struct clinux_registers *other);
// Prepares the end of the last call that was injected into a thread with these registers of its
// own. On x86-64 the registers that are set at an event stop determine how an interrupted call
// continues, so there is nothing to do (0). On arm64 the kernel decides that on the way to the
// event stop, by the result of the injected call, and doesn't show its decision. Returns 1 if it
// changed the registers: with them the kernel decides again as it did for the thread's own call.
int clinux_registers_leave_call(struct clinux_registers *registers);
// Handles a pending signal that a handler catches. On arm64 a call that returned EINTR for a stop
// would be made again after the handler; this makes it return EINTR instead.
// `every_handler_ends_it`: the call ends even after a handler with SA_RESTART, although its number
// doesn't show that (it receives or sends on a socket with a timeout). Returns 1 if it changed the
// registers.
int clinux_registers_interrupt_for_signal(struct clinux_registers *registers,
                                          int every_handler_ends_it);
// Returns 1 if /proc/PID/syscall doesn't show the call of a thread that is stopped or frozen. Its
// instruction is then the one that makes the call, or the one after it.
int clinux_stop_hides_calls(void);
int clinux_call_instruction_length(void);

// Finds a system call instruction in a copy of the vdso. Returns its offset, or -ENOENT.
int64_t clinux_find_syscall_instruction(const void *code, int64_t length);
// Writes to `code`: that instruction, a jump to itself, and a loop of pause(2). Returns the length.
// After the call the thread loops at the jump until the injector stops it, and does nothing else if
// the injector dies.
int clinux_write_syscall_trampoline(void *code, int capacity);
enum { CLINUX_TRAMPOLINE_LENGTH = 64, CLINUX_TRAMPOLINE_OFFSETS = 16 };  // both are maximums
// Stores the offsets in the trampoline at which a thread can be. Returns their number.
int clinux_trampoline_offsets(uint64_t *offsets, int capacity);
// Sets the registers so that the thread, if it is continued, waits inside the trampoline and
// accesses no other memory. `spins`: it makes no system call, for a process whose seccomp filter
// may forbid it.
void clinux_registers_park(struct clinux_registers *registers, uint64_t trampoline, int spins);
#endif
