/// A value behind a reference that copies share until one of them is changed.
@propertyWrapper
struct SharedUntilChanged<Value> {
  private final class Box {
    var value: Value
    init(_ value: Value) { self.value = value }
  }

  private var box: Box

  init(wrappedValue: Value) { box = Box(wrappedValue) }

  var wrappedValue: Value {
    _read { yield box.value }
    _modify {
      if !isKnownUniquelyReferenced(&box) { box = Box(box.value) }
      yield &box.value
    }
  }

  /// Copies of this share the value.
  var projectedValue: Self { self }
}
