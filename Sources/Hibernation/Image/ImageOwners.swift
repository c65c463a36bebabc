import Glibc
import Linux

/// The processes whose memory may be in an image. An image belongs to the processes that it names,
/// whatever the name of its file is: it may be the only copy of their memory.
public enum ImageOwners: Hashable, Sendable {
  /// No process of the image lives, or there is no image.
  case none
  /// Processes of the image that live, or that may live.
  case processes([ProcessIdentity])
  /// The image can't be read, so its processes aren't known.
  case unknown(String)

  /// Reads the image's header and index.
  public static func of(image path: String) -> ImageOwners {
    if isAbsent(path) { return .none }
    do throws(ImageError) {
      let living = try ImageReader(alone: path).processes.map(\.identity).filter { !$0.hasEnded }
      return living.isEmpty ? .none : .processes(living)
    } catch {
      // An empty file holds no memory. The processes of an older one ended with the last boot.
      if linkStatus(of: path)?.st_size == 0 || BootMark.isOfEarlierBoot(path) { return .none }
      return isAbsent(path) ? .none : .unknown("\(error)")
    }
  }

  /// Why the image must stay; `nil`: it may be removed, or replaced by another one.
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
  /// - Parameter isUnreadableNeeded: false if the worker of this name has ended: an image that
  /// can't be read was
  ///   its own.
  /// - Returns: why they stay; `nil`: they are removed, or don't exist.
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
    return nil
  }

  /// Checks that the worker's image would replace no other process's. Two workers have the same
  /// image if one of them was launched while no record of the other was left.
  func checkPlace(_ path: String, of tree: ProcessTree) throws(HibernationError) {
    let owners = ImageOwners.of(image: path)
    if case .processes(let processes) = owners {
      let own = Set(tree.processes.map(\.identity))
      if processes.allSatisfy(own.contains) { return }
    }
    guard let obstacle = owners.obstacle else { return }
    throw HibernationError(.checking, "its image would replace \(path): \(obstacle)")
  }
}
