import Linux

extension Operation {
  /// The reason why the worker can't be hibernated from this stop, or `nil` if it can. Each process
  /// needs a thread that waits in a system call, and so can be used for eviction. No thread that
  /// will be parked may be inside a restartable sequence.
  var busyReason: String? {
    for seized in processes {
      let threads = seized.session.threads
      if !threads.contains(where: \.isWaiting) {
        return "one of its processes never waits in a system call"
      }
      if freezer == nil,
        threads.contains(where: { seized.sequences.isInside($0, memory: seized.memory) })
      {
        return "one of its threads is always inside a restartable sequence (rseq)"
      }
    }
    return nil
  }
}
