import Lifecycle
import Testing

@Suite struct `A value that is shared until it is changed` {
  private final class Component: Sendable {}
  private struct Value {
    var number = 1
    var component = Component()
  }
  private struct Holder { @CopyOnWriteBox var value: Value }

  @Test func `A shared value is the same for all holders until one of them changes its own`() {
    var first = Holder(value: Value())
    let second = CopyOnWriteBox(wrappedValue: Value())
    let third = first.$value
    #expect(third.wrappedValue.component === first.value.component)
    first.value.number = 2
    #expect(first.value.number == 2 && third.wrappedValue.number == 1)
    #expect(second.wrappedValue.component !== first.value.component)
  }

  @Test func `A shared value is changed in place by its only holder`() {
    var holder = Holder(value: Value())
    weak let before = holder.value.component
    holder.value.component = Component()
    #expect(before == nil, "nothing else has kept it")
    holder.value.number += 1
    #expect(holder.value.number == 2)
  }
}
