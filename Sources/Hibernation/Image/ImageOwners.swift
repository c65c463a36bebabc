import Glibc
import Linux

/// The processes whose memory may be in an image. An image belongs to the processes that it names,
/// whatever the name of its file is: it may be the only copy of their memory.
public enum ImageOwners: Hashable, Sendable {
  /// No process of the image lives, or there is no image.
  case none
  /// These processes of the image live, or may live.
  case processes([ProcessIdentity])
  /// The image can't be read, so its processes aren't known. The text is the reason.
  case unknown(String)

  /// Reads the image's header and index, and checks which of its processes have ended.
  public static func of(image path: String) -> ImageOwners {
    if isAbsent(path) { return .none }
    do throws(ImageError) {
      let living = try ImageReader(alone: path).processes.map(\.identity).filter { !$0.hasEnded }
      return living.isEmpty ? .none : .processes(living)
    } catch {
      // An empty file holds no memory. The processes of an image from before the last boot have
      // ended.
      if linkStatus(of: path)?.st_size == 0 || BootMark.isOfEarlierBoot(path) { return .none }
      return isAbsent(path) ? .none : .unknown("\(error)")
    }
  }

  /// The reason why the image must stay. It is `nil` if the image may be removed, or replaced by
  /// another one.
  public var obstacle: String? {
    switch self {
    case .none: nil
    case .processes(let processes):
      "it has the memory of "
        + (processes.count == 1 ? "process " : "processes ")
        + processes.prefix(8).map { String($0.pid) }.joined(separator: ", ")
    case .unknown(let reason): "its processes aren't known: \(reason)"
    }
  }
}

extension Hibernator {
  /// Removes an image and its base, unless a process that the image names may live.
  ///
  /// - Parameter isUnreadableNeeded: false if the worker of this name has ended. An image that
  ///   can't be read was then its own, and is removed.
  /// - Returns: the reason why the files stay, or `nil` if they are removed or don't exist.
  @discardableResult
  public static func removeUnlessNeeded(
    _ path: String, isUnreadableNeeded: Bool = true
  ) -> String? {
    switch ImageOwners.of(image: path) {
    case .none: break
    case .unknown where !isUnreadableNeeded: break
    case let owners: return owners.obstacle
    }
    discardFile(path)
    discardFile(ImageLayout.basePath(of: path))
    discardFile(ImageWriter.partialPath(of: ImageLayout.basePath(of: path)))
    return nil
  }

  /// Checks that the worker's image wouldn't replace another process's image. Two workers have the
  /// same image path if one of them was launched while no record of the other was left.
  func checkReplaceable(_ path: String, of tree: ProcessTree) throws(HibernationError) {
    let owners = ImageOwners.of(image: path)
    if case .processes(let processes) = owners {
      let members = Set(tree.processes.map(\.identity))
      if processes.allSatisfy(members.contains) { return }
    }
    guard let obstacle = owners.obstacle else { return }
    throw HibernationError(.checking, "its image would replace \(path): \(obstacle)")
  }
}
