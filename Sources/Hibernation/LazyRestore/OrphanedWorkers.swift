import Glibc
import Linux

/// The workers that a standby pager serves after the end of its daemon.
struct OrphanedWorkers {
  private let keepsTrims: Bool
  private let report: @Sendable (String) -> Void
  /// Found out before the daemon's end, because some trials take long and workers wait then.
  private let features = KernelFeatures.detect()
  private var served: Set<String> = []
  private var trimmed: [Hibernator] = []
  /// One signal for each of `fills` that has ended.
  private let filled = Semaphore()
  private var fills = 0

  /// - Parameters:
  ///   - keepsTrims: false if trimmed workers get all of their pages.
  ///   - report: called with a line for each worker, on any thread.
  init(keepsTrims: Bool, report: @escaping @Sendable (String) -> Void) {
    self.keepsTrims = keepsTrims
    self.report = report
  }

  /// Serves the workers, by their images' paths, that aren't served yet.
  ///
  /// - Parameter isLocked: the daemon can't run any more, but still has the images' locks.
  mutating func serve(_ resumes: [String: AnnouncedResumes.Resume], isLocked: Bool) {
    var remaining: [(ImageReader, HibernationTarget)] = []
    // A fill may take long, so the trimmed workers come first.
    for (image, resume) in resumes where !served.contains(image) {
      guard let target = resume.target, let reader = Self.open(image, of: target, isLocked)
      else { continue }
      served.insert(image)
      if keepsTrims, keepTrim(reader, target) {
        report("\(target.name): stays trimmed")
      } else {
        remaining.append((reader, target))
      }
    }
    // An image that can't be read must not delay the others.
    for (reader, target) in remaining {
      let work: @Sendable () -> Void = { [features, report, filled] in
        if let line = Self.finish(target, from: reader, by: Hibernator(features: features)) {
          report(line)
        }
        filled.signal()
      }
      fills += 1
      if !Thread.start(name: "dormouse-fill", work) { work() }
    }
  }

  /// Waits until no worker needs this process any more.
  func waitForEnd() {
    for _ in 0..<fills { filled.wait() }
    while trimmed.contains(where: { $0.fills.values.contains { !$0.hasEnded } }) {
      pauseThread(for: .milliseconds(200))
    }
  }

  /// Opens and locks an image, if its worker is being restored from it.
  private static func open(
    _ image: String, of target: HibernationTarget, _ isLocked: Bool
  ) -> ImageReader? {
    // Nothing is changed without the image: the next daemon continues.
    guard let reader = try? ImageReader(path: image), reader.progress == .filling,
      !target.root.hasEnded, reader.processes.contains(where: { $0.identity == target.root })
    else { return nil }
    if isLocked {
      // A worker that was being trimmed again waits: its image may still be replaced. So does one
      // whose journals can't be read now.
      guard let all = try? Hibernator.findHandles(reader),
        all.allSatisfy({ [.trimmed, .filling].contains($0.handle.journal.phase) })
      else { return nil }
      // The daemon's end, for which a worker's page may be needed, makes the lock free.
      _ = Thread.start(name: "dormouse-lock") { _ = reader.lock(waits: true) }
    } else if !reader.lock(waits: false) {
      return nil
    }
    return reader.isStillAtPath ? reader : nil
  }

  /// Returns false if the worker isn't trimmed, or that isn't known.
  private mutating func keepTrim(_ reader: ImageReader, _ target: HibernationTarget) -> Bool {
    let hibernator = Hibernator(features: features)
    // `finish` reports the error.
    let isServed = (try? hibernator.continueTrim(reader, target)) ?? false
    if isServed { trimmed.append(hibernator) }
    return isServed
  }

  private static func finish(
    _ target: HibernationTarget, from reader: ImageReader, by hibernator: Hibernator
  ) -> String? {
    do throws(HibernationError) {
      guard try hibernator.isFilling(reader) else { return nil }
      _ = try hibernator.continueFill(reader, target)
      return "\(target.name): all missing pages are filled in"
    } catch {
      // It would run with zeros in the place of its memory as soon as this process has ended. If
      // that fails, the next daemon ends it.
      if error.aftermath == .unverifiable { try? target.cgroup?.kill() }
      return "\(target.name): \(error)"
    }
  }
}

extension Hibernator {
  /// Finds a running worker whose missing pages are in the image at this path.
  ///
  /// - Returns: `nil` if there is none, if the worker is frozen, or if that isn't known.
  public static func runningWorker(_ name: String, missing image: String) -> HibernationTarget? {
    // Without the image nothing is known.
    guard let reader = try? ImageReader(alone: image), reader.progress == .filling,
      let root = reader.processes.map(\.identity).first(where: { $0.life == .lives }),
      // Without the group it can't be served, and has probably ended.
      let group = try? WorkerCgroup.find(of: name, containing: root.pid),
      (try? group.isFrozen) == false
    else { return nil }
    return HibernationTarget(name: name, root: root, cgroup: group)
  }
}

/// The daemon that started this process.
struct ParentDaemon {
  private let pid: Int32
  private let pidfd: Descriptor?
  /// The names of threads that use workers' memory, journals and images. They wait only for a disk.
  private static let users = [
    "pager", "rest", "ahead", "lane", "trace", "aside",
  ].map { "dormouse-\($0)" }

  /// - Parameter connection: a connection that the daemon has made. This process may have another
  ///   parent by now.
  init(_ connection: Descriptor) {
    // An error counts as the daemon's end.
    pid = (try? PeerCredentials(of: connection.raw).process) ?? 0
    pidfd = try? Descriptor.pidfd(of: pid)  // as above
  }

  /// Waits until the daemon has closed all files, the images' locks among them: it may have closed
  /// its connections before. Returns false after one second.
  func waitForEnd() -> Bool {
    guard let pidfd else { return true }
    // An error counts as the daemon's end.
    return (try? pollDescriptor(pidfd.raw, for: POLLIN, until: Deadline(in: .seconds(1)))) ?? true
  }

  /// True if the daemon was killed and can't end, because a thread of it waits in the kernel for a
  /// lock that a worker may have while it waits for a missing page. That can be in a call, or when
  /// the last thread closes the daemon's files. Such a thread never runs in user mode again.
  func isStuck() -> Bool {
    guard cannotRun() else { return false }
    pauseThread(for: .milliseconds(100))
    return cannotRun()
  }

  /// Releases the locks of a daemon that is stuck. Returns false if it may still have locks.
  func releaseLocks() -> Bool { AbandonedLocks.release(of: pid) }

  private func cannotRun() -> Bool {
    do throws(SystemCallError) {
      // The first thread ends only with the whole process.
      let first = try ProcessStat.read(pid)
      guard first.state == .zombie || first.isExiting else { return false }
      for thread in try threads(of: pid) {
        let stat = try ProcessStat.read(thread: thread, of: pid)
        if stat.state.isEnded { continue }
        guard stat.state == .uninterruptible, stat.isExiting || !Self.users.contains(stat.name)
        else { return false }
      }
      return true
    } catch { return false }  // The next look is in a second.
  }
}
