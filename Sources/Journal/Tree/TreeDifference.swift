import JSONLines

// Most workers have the machine's policy with one or two keys of their own. Only those keys are
// written.

extension JSON {
  /// Returns the members that must be laid over `base` to get this value. Equal members are left
  /// out.
  public func difference(from base: JSON) -> JSON {
    guard case .object(let members) = self, case .object = base else { return self }
    return .object(
      members.compactMap { member in
        guard let other = base[member.name] else { return member }
        if other == member.value { return nil }
        return Member(member.name, member.value.difference(from: other))
      })
  }

  /// Returns this value with the members of `top` laid over it; objects are merged member by
  /// member.
  ///
  /// An enum's value is an object with a single member that names the case. If two of them were
  /// merged, the result would be no valid value. So an object that shares no member with this one
  /// replaces it.
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
