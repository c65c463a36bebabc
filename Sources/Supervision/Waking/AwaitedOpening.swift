import CLinux
import Glibc
import Linux
import Synchronization

/// A FIFO that a sleeping worker waits to open. The daemon opens it instead.
///
/// open(2) of a FIFO waits for the other end (fifo(7)). A stop or freeze interrupts that call until
/// the worker runs again. Without the daemon, another process that opens the other end would wait
/// for ever, and nothing would wake the worker. So the daemon keeps the worker's end open:
///
///     worker asleep in open(O_RDONLY)   daemon opens a reading end   a writer's open returns: wake
///     worker asleep in open(O_WRONLY)   daemon opens both ends       a reader's open returns: wake
///
/// Written data stays in the FIFO while an end is open. If the writer has closed it before the
/// worker has opened it again, the worker would wait for another writer. So from the wake on, the
/// daemon keeps the other end open, too. It closes both when the worker runs and its call has
/// returned. While the worker sleeps, that can't be found: its memory may be on disk.
final class AwaitedOpening: Sendable {
  let wait: OutsideWait
  let path: String
  private let end: Descriptor
  /// Becomes readable when another process opens the FIFO.
  let opens: Descriptor
  private let node: Descriptor
  private let writes: Bool
  /// From the wake on.
  private let otherEnd = Mutex<Descriptor?>(nil)

  /// Returns nil if the file isn't a FIFO, or the daemon can't open it for this worker: the FIFO is
  /// in another root directory, its mode doesn't permit the worker's user to open it, or its name
  /// isn't in the kernel's cache.
  init?(_ wait: OutsideWait) {
    guard case .opening(let directory, let path, let writes) = wait.reason,
      let node = Self.find(path, from: directory, of: wait.pid),
      Self.isPermitted(node, to: wait.pid, writes: writes)
    else { return nil }
    let link = "/proc/self/fd/\(node.raw)"
    do throws(SystemCallError) {
      // This open fails with ENXIO unless a reader waits already. There is no other way to detect
      // that reader.
      let early = writes ? try? Descriptor.open(link, O_WRONLY | O_NONBLOCK) : nil
      opens = Descriptor(
        owning: try shim("inotify_add_watch", on: path) { clinux_watch_opens(node.raw) })
      end = try Descriptor.open(link, (writes ? O_RDWR : O_RDONLY) | O_NONBLOCK)
      // The daemon's own open was reported, too. If a reader opens the FIFO in the microseconds
      // between the two lines, its open is taken for the daemon's.
      if early == nil { _ = try? opens.read(upTo: 4096) }
    } catch { return nil }
    self.wait = wait
    self.path = path
    self.node = node
    self.writes = writes
  }

  /// True if the other end is open, or was open and has left data.
  var isOpened: Bool {
    if writes { return opens.inputEvents != 0 }
    if end.inputEvents & Int16(POLLHUP) != 0 { return true }
    return clinux_has_writer(end.raw) == 1
  }

  /// The descriptor for the epoll set. It reports data and hang-ups of the open end.
  var held: Descriptor { end }

  /// Keeps the other end open, too, until `handOver`. Call it before the worker runs.
  func keepOpen() {
    let link = "/proc/self/fd/\(node.raw)"
    // If both ends are open already, this opens one of them again. It can't block, because the
    // other end is open. If it fails, the worker waits for the next open.
    let other = try? Descriptor.open(link, (writes ? O_RDONLY : O_WRONLY) | O_NONBLOCK)
    otherEnd.withLock { if $0 == nil { $0 = other } }
  }

  /// Keeps both ends open until the worker's call has returned, at most for 10 s. Call it when the
  /// worker is about to run, or runs.
  func handOver() {
    keepOpen()
    let other = otherEnd.withLock { end in
      defer { end = nil }
      return end
    }
    // Without a thread the ends are closed at once, and the worker waits for the next open.
    _ = Thread.start(name: "dormouse-fifo") { [self] in
      let deadline = Deadline(in: .seconds(10))
      // inotify also reports the daemon's own opens, so this thread polls.
      while !hasBeenOpened, !wait.isOver, !deadline.hasPassed { pauseThread(for: .milliseconds(2)) }
      withExtendedLifetime((self, other)) {}
    }
  }

  /// True if the worker has a descriptor of the FIFO.
  private var hasBeenOpened: Bool {
    guard let status = node.status else { return true }
    // If its descriptors can't be listed, the worker has ended. `isOver` detects that.
    return ((try? OpenDescriptor.list(of: wait.pid)) ?? []).contains {
      $0.kind == .fifo && $0.inode == UInt64(status.st_ino)
    }
  }

  private static func find(_ path: String, from directory: Int32, of pid: Int32) -> Descriptor? {
    let base: String
    if path.hasPrefix("/") {
      // The path is valid only if the process has this root directory.
      guard let ours = fileStatus(of: "/"), let other = fileStatus(of: "/proc/\(pid)/root"),
        ours.isSameFile(as: other)
      else { return nil }
      base = "/"
    } else {
      base = directory == AT_FDCWD ? "/proc/\(pid)/cwd" : "/proc/\(pid)/fd/\(directory)"
    }
    let result = clinux_open_cached(base, path)
    return result < 0 ? nil : Descriptor(owning: result)
  }

  /// Whether the mode permits the worker's user to open the file: a daemon that is root must not
  /// open for a worker what its user may not. Access control lists aren't read, so what only they
  /// permit is refused.
  private static func isPermitted(_ node: Descriptor, to pid: Int32, writes: Bool) -> Bool {
    guard let file = node.status, file.isFIFO, let process = fileStatus(of: "/proc/\(pid)") else {
      return false
    }
    if process.st_uid == 0 { return true }
    let bit: mode_t = writes ? 2 : 4
    if file.st_uid == process.st_uid { return file.st_mode & (bit << 6) != 0 }
    if file.st_gid == process.st_gid { return file.st_mode & (bit << 3) != 0 }
    return file.st_mode & bit != 0
  }
}

extension OutsideWait {
  /// The event that a sleeping worker misses, as a clause, if the wait can't be watched.
  var missed: String {
    switch reason {
    case .opening(_, let path, _): "the opening of \(path)"
    case .fileLock: "the release of a file lock"
    case .sharedMemory: "a wake-up through memory shared with another process"
    case .semaphore: "a System V semaphore"
    case .messages: "a message in a System V queue"
    case .messageQueue: "a message in a POSIX queue"
    }
  }
}
