import CLinux
import Glibc
import Linux

/// A small process that stands by while a daemon brings missing pages: when the daemon dies, it goes
/// on at once, so that no worker has to wait for the next daemon. It holds nothing before that; all
/// that is needed, the workers hold (`FaultJournal`) and the image says. A lock on the image keeps it
/// and a new daemon apart; and if it dies too, the workers wait.
public enum StandbyPager {
  /// Reads what the daemon announces, one resume a line, and takes back, until the daemon is gone.
  ///
  /// - Returns: the workers whose pages it has brought, and what it couldn't do.
  public static func run(input: Descriptor) -> [String] {
    clinux_stay_out_of_core_files()
    var book = StandbyBook()
    // An error counts as the end: the daemon is gone.
    while let part = try? input.read(upTo: 4096), !part.isEmpty { book.parse(part) }
    return book.announced.compactMap { image, resume in
      resume.target.flatMap { finish(image, $0) }
    }
  }

  private static func finish(_ image: String, _ target: HibernationTarget) -> String? {
    // An image that is gone, or damaged, can't be filled from.
    guard let reader = try? ImageReader(path: image), reader.progress == .filling,
      target.root.isAlive, reader.processes.contains(where: { $0.identity == target.root }),
      reader.lock(waits: false), reader.isInPlace
    else { return nil }
    let hibernator = Hibernator()
    do throws(HibernationError) {
      guard try hibernator.isFilling(reader) else { return nil }
      _ = try hibernator.continueFill(reader, target)
      return "\(target.name): all missing pages are filled in"
    } catch { return "\(target.name): \(error)" }
  }

  // MARK: what is announced

  /// Fields, separated by tabs; `nil` where a path has what separates them.
  static func line(_ target: HibernationTarget, image: String) -> String? {
    guard let cgroup = target.cgroup?.freezer else { return nil }
    let fields = [
      target.name, "\(target.root.pid)", "\(target.root.startTime)", cgroup.path, image,
    ]
    if fields.contains(where: { $0.utf8.contains(9) || $0.utf8.contains(10) }) { return nil }
    return fields.joined(separator: "\t") + "\n"
  }

  /// That all pages of an image are in place.
  static func endLine(image: String) -> String? {
    image.utf8.contains(9) || image.utf8.contains(10) ? nil : image + "\n"
  }
}

/// Lazy restores that the daemon has announced and that haven't ended. Words only: it opens
/// nothing before the daemon is gone, so that its size doesn't grow with the number of workers.
struct StandbyBook {
  struct Resume {
    let name: String
    let root: ProcessIdentity
    let cgroup: String

    /// `nil`: the worker's group is gone, and so is the worker.
    var target: HibernationTarget? {
      guard let group = try? WorkerCgroup(path: cgroup) else { return nil }
      return HibernationTarget(name: name, root: root, cgroup: group)
    }
  }

  /// By the image's path.
  private(set) var announced: [String: Resume] = [:]
  private var text: [UInt8] = []

  mutating func parse(_ part: [UInt8]) {
    text += part
    while let end = text.firstIndex(of: 10) {
      let line = String(decoding: text[..<end], as: UTF8.self)
      text.removeSubrange(...end)
      let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
      if fields.count == 1 {
        announced[fields[0]] = nil
      } else if fields.count == 5, let pid = Int32(fields[1]), let time = UInt64(fields[2]) {
        announced[fields[4]] = Resume(
          name: fields[0], root: ProcessIdentity(pid: pid, startTime: time), cgroup: fields[3])
      }
    }
  }
}

/// The daemon's end of it.
public final class Standby: Sendable {
  private let socket: Descriptor
  public let process: SpawnedProcess

  /// Starts it. Only from a thread that lives as long as the daemon.
  ///
  /// - Parameter command: a program and arguments that run `StandbyPager` on descriptor 0.
  public init(command: [String]) throws {
    let theirs: Descriptor
    (socket, theirs) = try Descriptor.socketPair(.stream)
    let null = try Descriptor.open("/dev/null", O_RDWR)
    var request = SpawnRequest(
      path: command.first ?? "", arguments: command, environment: [:], directory: "/",
      input: theirs.raw, output: null.raw, error: 2)
    // A part of the daemon: workers wait for it when the daemon is gone.
    request.oomScore = .kept
    process = try spawn(request, within: .seconds(1))
  }

  /// It may have been killed. Buries it then; once.
  public func hasEnded() -> Bool { reapIfEnded(process.pid) }

  /// Before a worker runs with pages missing. What can't be announced, the next daemon finds.
  func announce(_ target: HibernationTarget, image: String) {
    if let line = StandbyPager.line(target, image: image) { send(line) }
  }

  /// When all pages are in place.
  func retract(image: String) {
    if let line = StandbyPager.endLine(image: image) { send(line) }
  }

  private func send(_ line: String) {
    _ = socket.send(Array(line.utf8), waits: false)
  }
}
