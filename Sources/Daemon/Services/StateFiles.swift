import Linux

/// Small files of the daemon's that are replaced as a whole. Tests hand in their own.
protocol StateFileWriter: AnyObject {
  /// Returns at once. `then` is called on the loop, later, with the reason if the file couldn't be replaced;
  /// on a disk that doesn't answer it isn't called. Files are replaced in the order of the calls.
  func replace(_ path: String, with text: String, then: @escaping (_ failure: String?) -> Void)
}

/// Writes them on the disk's thread. Belongs to the loop's thread.
final class StateFiles: StateFileWriter {
  private let disk: DiskQueue
  private let mailbox: Mailbox<StateFiles>
  private var waiting: [UInt64: (String?) -> Void] = [:]
  private var count: UInt64 = 0

  init(_ loop: EventLoop, _ disk: DiskQueue) throws(SystemCallError) {
    self.disk = disk
    mailbox = try Mailbox()
    try loop.watch(mailbox.descriptor, .readable) { [unowned self, unowned loop] _ in
      mailbox.drain(self, on: loop)
    }
  }

  func replace(_ path: String, with text: String, then: @escaping (_ failure: String?) -> Void) {
    count += 1
    let number = count
    waiting[number] = then
    disk.submit { [mailbox] in
      let failure = Daemon.failure { try replaceFile(path, with: text) }
      mailbox.post { $0.waiting.removeValue(forKey: number)?(failure) }
    }
  }
}
