import Linux

extension FaultJournal {
  /// The beginning of a journal, which says whose it is.
  struct Header {
    private static let magic: UInt64 = 0x4655_4144_4f52_4d31

    var process: ProcessIdentity
    var userfault: Int32
    var inode: UInt64
    /// It is false if an earlier version of Dormouse made the journal, in a file that the worker
    /// can write to.
    private(set) var isTrusted = true

    /// The version of the header. Version 1 was a file of the worker's own, and version 2 had one
    /// area.
    private static let version: UInt64 = 3

    var fields: [UInt64] {
      [
        Self.magic, Self.version, UInt64(process.pid), process.startTime,
        UInt64(userfault), inode,
      ]
    }

    init(process: ProcessIdentity, userfault: Int32, inode: UInt64) {
      self.process = process
      self.userfault = userfault
      self.inode = inode
    }

    /// - Parameter isPrivateFile: true if no other user may open the file.
    init?(_ fields: [UInt64], isPrivateFile: Bool) {
      guard fields.count >= 6, fields[0] == Self.magic,
        (1...Self.version).contains(fields[1]),
        let pid = Int32(exactly: fields[2]), let number = Int32(exactly: fields[4])
      else { return nil }
      self.init(
        process: ProcessIdentity(pid: pid, startTime: fields[3]), userfault: number,
        inode: fields[5])
      isTrusted = fields[1] == Self.version && isPrivateFile
    }
  }

  /// All messages so far, in batches. Within a batch the order isn't certain. `open` has the
  /// messages of a batch that hasn't ended.
  var batches: (closed: [[Message]], open: [Message]) {
    var closed: [[Message]] = []
    var open: [Message] = []
    for message in messages {
      if message.event == Self.quiet {
        closed.append(open)
        open = []
      } else {
        open.append(message)
      }
    }
    return (closed, open)
  }
}
