import JSONLines

// Most workers have the machine's policy with a key or two of their own. Only those are written.

extension JSON {
  /// The members to lay over `base` to get this value; equal members are left out.
  public func difference(from base: JSON) -> JSON {
    guard case .object(let members) = self, case .object = base else { return self }
    return .object(
      members.compactMap { member in
        guard let other = base[member.name] else { return member }
        if other == member.value { return nil }
        return Member(member.name, member.value.difference(from: other))
      })
  }

  /// This value with the members of `top` laid over it, those of objects one by one.
  ///
  /// An enum's value is an object with a single member that names the case: laid over each other, two
  /// of them would be no valid value. So an object without any member that is known below replaces it.
  public func overlaid(with top: JSON) -> JSON {
    guard case .object(let members) = top, case .object = self else { return top }
    if !members.isEmpty, members.allSatisfy({ self[$0.name] == nil }) { return top }
    var result = self
    for member in members {
      result.set(member.name, self[member.name]?.overlaid(with: member.value) ?? member.value)
    }
    return result
  }
}
