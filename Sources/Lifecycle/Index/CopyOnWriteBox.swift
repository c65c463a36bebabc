/// A value behind one reference. It is copied when it is changed while another reference to it
/// exists. So copying what contains it costs a retain, however big it is. Reads and changes are in
/// place.
@propertyWrapper
public struct CopyOnWriteBox<Value: Sendable>: Sendable {
  /// `Sendable` is unchecked: `value` is changed only by `wrappedValue`'s modify, which first makes
  /// sure that no other `CopyOnWriteBox`, and so no other thread, refers to this box.
  private final class Box: @unchecked Sendable {
    /// Exclusivity is unchecked for the same reason, so that no access needs a check at run time.
    @exclusivity(unchecked) var value: Value
    init(_ value: Value) { self.value = value }
  }

  private var box: Box

  public init(wrappedValue: Value) { box = Box(wrappedValue) }

  public var wrappedValue: Value {
    _read { yield box.value }
    _modify {
      if !isKnownUniquelyReferenced(&box) { box = Box(box.value) }
      yield &box.value
    }
  }

  /// Copies of this share the value.
  public var projectedValue: Self { self }
}

extension CopyOnWriteBox: Equatable where Value: Equatable {
  public static func == (left: CopyOnWriteBox, right: CopyOnWriteBox) -> Bool {
    left.box === right.box || left.box.value == right.box.value
  }
}

// A checkpoint contains the value, not the reference.
extension CopyOnWriteBox: Codable where Value: Codable {
  public init(from decoder: any Decoder) throws {
    self.init(wrappedValue: try Value(from: decoder))
  }
  public func encode(to encoder: any Encoder) throws { try wrappedValue.encode(to: encoder) }
}
