import Synchronization

/// A policy that all workers with equal policies share: it takes most of a kilobyte, and most
/// workers of a daemon have the same one.
@propertyWrapper
public struct SharedPolicy: Sendable {
  @usableFromInline final class Box: Sendable {
    @usableFromInline let value: LifecyclePolicy
    init(_ value: LifecyclePolicy) { self.value = value }
  }

  @usableFromInline private(set) var box: Box

  /// The latest policies that differ, the newest last.
  private static let recent = Mutex<[Box]>([])
  private static let maxRecent = 4

  public init(wrappedValue: LifecyclePolicy) { box = Self.box(of: wrappedValue) }

  public var wrappedValue: LifecyclePolicy {
    @inlinable _read { yield box.value }
    _modify {
      var changed = box.value
      defer { box = Self.box(of: changed) }
      yield &changed
    }
  }

  private static func box(of policy: LifecyclePolicy) -> Box {
    recent.withLock { boxes in
      if let existing = boxes.last(where: { $0.value == policy }) { return existing }
      let new = Box(policy)
      if boxes.count == maxRecent { boxes.removeFirst() }
      boxes.append(new)
      return new
    }
  }
}

extension SharedPolicy: Hashable {
  public static func == (left: SharedPolicy, right: SharedPolicy) -> Bool {
    left.box === right.box || left.box.value == right.box.value
  }

  public func hash(into hasher: inout Hasher) { box.value.hash(into: &hasher) }
}

/// Coded as the policy itself.
extension SharedPolicy: Codable {
  public init(from decoder: any Decoder) throws {
    self.init(wrappedValue: try LifecyclePolicy(from: decoder))
  }

  public func encode(to encoder: any Encoder) throws { try box.value.encode(to: encoder) }
}
