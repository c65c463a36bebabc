import CLinux
import Glibc
import Linux

/// A FIFO that a sleeping worker waits to open, opened in its place.
///
/// open(2) of a FIFO waits for the other end (fifo(7)), and a stop or freeze undoes it until the worker
/// runs again: while it sleeps, another process that opens the other end would wait for ever, and
/// nothing would wake the worker. So the daemon holds the worker's end open:
///
///     worker asleep in open(O_RDONLY)   daemon holds a reading end   a writer's open returns: wake
///     worker asleep in open(O_WRONLY)   daemon holds both ends       a reader's open returns: wake
///
/// What a writer has written stays in the FIFO while an end is held. If the writer has closed it before
/// the worker has opened it again, the worker would wait for another one; so from the wake on the other
/// end is held as well, until the worker's call has returned.
final class AwaitedOpening: Sendable {
  let wait: OutsideWait
  let path: String
  private let end: Descriptor
  /// Becomes readable when another process opens the FIFO.
  let opens: Descriptor
  private let node: Descriptor
  private let writes: Bool

  /// nil: it isn't a FIFO, or the daemon can't stand in for this worker: the FIFO is in another root
  /// directory or may not be opened by the worker's user, or its name isn't in the kernel's cache.
  init?(_ wait: OutsideWait) {
    guard case .opening(let directory, let path, let writes) = wait.reason,
      let node = Self.find(path, from: directory, of: wait.pid),
      Self.isPermitted(node, to: wait.pid, writes: writes)
    else { return nil }
    let link = "/proc/self/fd/\(node.raw)"
    do throws(SystemCallError) {
      // Fails with ENXIO unless a reader waits already, which is the only way to learn of that one.
      let early = writes ? try? Descriptor.open(link, O_WRONLY | O_NONBLOCK) : nil
      opens = Descriptor(
        owning: try shim("inotify_add_watch", on: path) { clinux_watch_opens(node.raw) })
      end = try Descriptor.open(link, (writes ? O_RDWR : O_RDONLY) | O_NONBLOCK)
      // Our own opening was reported as well. A reader's that comes in the microseconds between the
      // two lines is taken for ours.
      if early == nil { _ = try? opens.read(upTo: 4096) }
    } catch { return nil }
    self.wait = wait
    self.path = path
    self.node = node
    self.writes = writes
  }

  /// The other end is open, or was and left something behind.
  var isOpened: Bool {
    if writes { return opens.inputEvents != 0 }
    if end.inputEvents & Int16(POLLHUP) != 0 { return true }
    return clinux_has_writer(end.raw) == 1
  }

  /// For the epoll set: data and hang-ups of the end that is held.
  var held: Descriptor { end }

  /// Holds the other end too, until the worker's call has returned, 10 s at the most. Before the worker
  /// runs.
  func admit() {
    let link = "/proc/self/fd/\(node.raw)"
    // Where both ends are held this is one more of them; it can't wait, for the other end is open.
    let other = try? Descriptor.open(link, (writes ? O_RDONLY : O_WRONLY) | O_NONBLOCK)
    let isStarted = Thread.start(name: "dormouse-fifo") { [self] in
      let deadline = Deadline(in: .seconds(10))
      // On a thread of its own: inotify reports our own openings, too, so this looks again and again.
      while !hasBeenOpened, !wait.isOver, !deadline.hasPassed { pauseThread(for: .milliseconds(2)) }
      withExtendedLifetime((self, other)) {}
    }
    // Without a thread the ends are closed at once, and the worker waits for the next opening.
    if !isStarted { withExtendedLifetime(other) {} }
  }

  /// The worker has a descriptor of it.
  private var hasBeenOpened: Bool {
    guard let status = node.status else { return true }
    // What can't be listed has ended, which `isOver` finds.
    return ((try? OpenDescriptor.list(of: wait.pid)) ?? []).contains {
      $0.kind == .fifo && $0.inode == UInt64(status.st_ino)
    }
  }

  private static func find(_ path: String, from directory: Int32, of pid: Int32) -> Descriptor? {
    let base: String
    if path.hasPrefix("/") {
      guard isOurRoot(pid) else { return nil }
      base = "/"
    } else {
      base = directory == AT_FDCWD ? "/proc/\(pid)/cwd" : "/proc/\(pid)/fd/\(directory)"
    }
    let result = clinux_open_cached(base, path)
    return result < 0 ? nil : Descriptor(owning: result)
  }

  private static func isOurRoot(_ pid: Int32) -> Bool {
    guard let ours = fileStatus(of: "/"), let other = fileStatus(of: "/proc/\(pid)/root") else {
      return false
    }
    return ours.isSameFile(as: other)
  }

  /// A daemon that is root must not open for a worker what its user may not: by the mode alone, which
  /// refuses what only an access control list permits.
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
  /// What a sleeping worker misses, as a clause; for what isn't watched.
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
