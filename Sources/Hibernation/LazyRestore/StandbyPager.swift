import CLinux
import Glibc
import Linux

/// A small process that stands by while a daemon fills missing pages. If the daemon dies, it
/// continues at once, so that no worker has to wait for the next daemon. Before that it has nothing
/// open: the workers have the descriptors (`FaultJournal`), and the image has the pages. A lock on
/// the image keeps the standby pager and a new daemon apart. If the standby pager dies too, the
/// workers wait.
public enum StandbyPager {
  /// Reads the daemon's announcements and retractions, one packet for each resume, until the daemon
  /// ends. Then it fills the missing pages. Trimmed workers get those that they need, until another
  /// daemon has started or they have ended.
  ///
  /// - Parameters:
  ///   - lock: the path of the file that a daemon keeps locked. Without one, trimmed workers get
  ///     all of their pages.
  ///   - report: called with a line for each worker, on any thread.
  public static func run(
    input: Descriptor, lock: String?, report: @escaping @Sendable (String) -> Void
  ) {
    clinux_stay_out_of_core_files()
    // The daemon's children get its first limit, and each trimmed worker needs ten descriptors.
    clinux_raise_descriptor_limit()
    // The reader of the daemon's log may end before the daemon.
    signal(SIGPIPE, SIG_IGN)
    let daemon = ParentDaemon(input)
    var orphans = OrphanedWorkers(keepsTrims: lock != nil, report: report)
    // A lock file that can't be opened isn't locked by a daemon that could serve its workers.
    let lock = lock.flatMap { try? Descriptor.open($0, O_RDONLY) }
    var resumes = AnnouncedResumes()
    // True if a daemon that can't end has no lock any more. Then it counts as ended.
    var isUnlocked = false
    // An error counts as the end of the daemon: while the daemon fills pages, it has the images'
    // locks.
    while let isReady = try? pollDescriptor(
      input.raw, for: POLLIN,
      until: Deadline(in: resumes.announced.isEmpty ? .seconds(1 << 20) : .seconds(1)))
    {
      if isReady {
        guard let (packet, kept) = receive(from: input) else { break }
        resumes.parse(packet, kept)
      } else if daemon.isStuck() {
        isUnlocked = daemon.releaseLocks()
        if isUnlocked { break }
        orphans.serve(resumes.announced, isLocked: true)
      }
    }
    let deadline = Deadline(in: .seconds(3))
    // While it can't end, its lock isn't that of another daemon.
    while !isUnlocked, !daemon.waitForEnd() {
      if daemon.isStuck() {
        isUnlocked = daemon.releaseLocks()
        if !isUnlocked { orphans.serve(resumes.announced, isLocked: true) }
      } else if deadline.hasPassed {
        break
      }
    }
    if let lock { endWhenLocked(lock) }
    orphans.serve(resumes.announced, isLocked: false)
    orphans.waitForEnd()
  }

  /// Ends this process when another daemon has locked the file: the images' locks are free then,
  /// and the daemon continues. It may end at any point.
  private static func endWhenLocked(_ lock: Descriptor) {
    // Without the thread, the daemon waits for the end of the fills.
    _ = Thread.start(name: "dormouse-lock") {
      var turns = 0
      while turns < 3 {
        pauseThread(for: .milliseconds(200))
        // For a moment, a child that the daemon was about to start may still have its lock.
        let isLocked = kernelResult { flock(lock.raw, LOCK_SH | LOCK_NB) } == -EWOULDBLOCK
        turns = isLocked ? turns + 1 : 0
        if !isLocked { lock.unlock() }
      }
      _exit(0)
    }
  }

  /// Receives a packet, which may bring a descriptor. Returns `nil` at the daemon's end.
  private static func receive(from input: Descriptor) -> (packet: [UInt8], kept: Descriptor?)? {
    while true {
      var bytes: [UInt8] = []
      do throws(SystemCallError) {
        guard let reception = try Reception.receive(from: input, longest, &bytes) else {
          try waitForInput([input])
          continue
        }
        return reception.count == 0 ? nil : (bytes, reception.passed.first)
      } catch { return nil }
    }
  }

  // MARK: what is announced

  /// The longest announcement, in bytes: two paths and a name fit. A longer packet would be cut
  /// off.
  fileprivate static let longest = 16384

  /// Returns the announcement: fields separated by tabs. It is `nil` if a path contains a
  /// separator.
  static func line(_ target: HibernationTarget, image: String) -> String? {
    guard let cgroup = target.cgroup?.freezer else { return nil }
    let fields = [
      target.name, "\(target.root.pid)", "\(target.root.startTime)", cgroup.path, image,
    ]
    if fields.contains(where: { $0.utf8.contains(9) || $0.utf8.contains(10) }) { return nil }
    let line = fields.joined(separator: "\t") + "\n"
    return line.utf8.count <= longest ? line : nil
  }

  /// Returns the line that brings a userfaultfd of a trimmed worker.
  static func keepLine(image: String) -> String? {
    image.utf8.contains(9) || image.utf8.contains(10) ? nil : image + "\tkeep\n"
  }

  /// Returns the retraction, which says that all pages of an image are in place.
  static func endLine(image: String) -> String? {
    image.utf8.contains(9) || image.utf8.contains(10) ? nil : image + "\n"
  }
}

/// The lazy restores that the daemon has announced and that haven't ended. It has only text, and
/// the userfaultfds of trimmed workers: a worker that closes its own ones would otherwise read
/// zeros as soon as the daemon has ended.
struct AnnouncedResumes {
  struct Resume {
    let name: String
    let root: ProcessIdentity
    let cgroup: String

    /// The worker. It is `nil` if the worker's group can't be opened: it has ended, or the next
    /// daemon continues.
    var target: HibernationTarget? {
      // If the group can't be opened, the next daemon continues.
      guard let group = try? WorkerCgroup(path: cgroup) else { return nil }
      return HibernationTarget(name: name, root: root, cgroup: group)
    }
  }

  /// The resumes, by the image's path.
  private(set) var announced: [String: Resume] = [:]
  private var kept: [String: [Descriptor]] = [:]

  /// - Parameter packet: a whole line. The kernel delivers a packet whole or not at all, so a lost
  ///   line never damages another one.
  mutating func parse(_ packet: [UInt8], _ descriptor: Descriptor? = nil) {
    guard packet.last == 10 else { return }
    let line = String(decoding: packet.dropLast(), as: UTF8.self)
    let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
    if fields.count == 1 {
      announced[fields[0]] = nil
      kept[fields[0]] = nil
    } else if fields.count == 2, let descriptor {
      kept[fields[0], default: []].append(descriptor)
    } else if fields.count == 5, let pid = Int32(fields[1]), let time = UInt64(fields[2]) {
      announced[fields[4]] = Resume(
        name: fields[0], root: ProcessIdentity(pid: pid, startTime: time), cgroup: fields[3])
    }
  }
}

/// The daemon's end of the connection to the standby pager.
public final class StandbyPagerConnection: Sendable {
  private let socket: Descriptor
  /// The standby pager's process.
  public let process: SpawnedProcess

  /// Starts the standby pager. Call it only from a thread that lives as long as the daemon.
  ///
  /// - Parameter command: a program and arguments that run `StandbyPager` on descriptor 0.
  public init(command: [String]) throws {
    let theirs: Descriptor
    (socket, theirs) = try Descriptor.socketPair(.packets)
    // A stopped pager must not block the daemon.
    try socket.setFlags(O_NONBLOCK)
    let null = try Descriptor.open("/dev/null", O_RDWR)
    var request = SpawnRequest(
      path: command.first ?? "", arguments: command, environment: [:], directory: "/",
      input: theirs.raw, output: null.raw, error: 2)
    // It has the daemon's OOM score: workers wait for it when the daemon has ended.
    request.oomScore = .kept
    process = try spawn(request, within: .seconds(1))
  }

  /// Returns true if the standby pager has ended (it may have been killed). It reaps the process
  /// once.
  public func hasEnded() -> Bool {
    process.reapIfEnded()
    return process.identity.hasEnded
  }

  /// Announces a resume. Call it before a worker runs with pages missing. If a resume can't be
  /// announced, the next daemon finds it.
  ///
  /// - Parameter kept: the userfaultfds of a trimmed worker.
  func announce(_ target: HibernationTarget, image: String, keeping kept: [Descriptor]) {
    if let line = StandbyPager.line(target, image: image) { send(line) }
    guard !kept.isEmpty, let line = StandbyPager.keepLine(image: image) else { return }
    for descriptor in kept { send(line, with: descriptor) }
  }

  /// Retracts an announcement. Call it when all pages are in place, or the worker is suspended.
  func retract(image: String) {
    if let line = StandbyPager.endLine(image: image) { send(line) }
  }

  /// Sends a packet. If the socket's queue is full for a second, the standby pager is ended: it
  /// would lack a resume, or could wake a worker later. The daemon starts another one, and
  /// announces all resumes to it that haven't ended.
  private func send(_ line: String, with passed: Descriptor? = nil) {
    let (bytes, deadline) = (Array(line.utf8), Deadline(in: .seconds(1)))
    func attempt() -> Int64 {
      guard let passed else { return Int64(socket.send(bytes, waits: false)) }
      return clinux_send_with_descriptor(socket.raw, bytes, Int64(bytes.count), passed.raw)
    }
    while attempt() == -Int64(EAGAIN) {
      // If that fails, the next attempt to send shows whether the socket has room.
      let hasRoom = try? pollDescriptor(socket.raw, for: POLLOUT, until: deadline)
      if hasRoom == true, !deadline.hasPassed { continue }
      // If the signal can't be sent, the process has ended.
      _ = try? process.identity.signal(SIGKILL)
      return
    }
  }
}
