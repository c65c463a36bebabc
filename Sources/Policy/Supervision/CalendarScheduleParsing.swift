/// Why a text isn't a schedule.
public struct ScheduleError: Error, Hashable, Sendable {
  /// The position in the text, in Unicode scalars from its start.
  public var offset: Int
  /// What is wrong, as a clause that follows a key's name: "has 4 fields, not 5".
  public var message: String
  /// What to write instead.
  public var suggestion: String?
}

extension CalendarSchedule {
  /// Reads `MINUTE HOUR DAY MONTH WEEKDAY` or `@hourly`, `@daily`, `@weekly`, `@monthly`,
  /// `@yearly`.
  ///
  /// A field is `*`, a number, a name (`jan`, `mon`), a range `1-5`, any of them with a step
  /// (`*/10`), or several of these with commas between them. Sunday is 0 or 7.
  public init(parsing text: String) throws(ScheduleError) {
    let trimmed = text.split(separator: " ").joined(separator: " ")
    var fields = Self.fields(of: text)
    if trimmed.hasPrefix("@") {
      guard let line = Self.named[trimmed.lowercased()] else { throw Self.unknownName(trimmed) }
      fields = Self.fields(of: line)
    }
    guard fields.count == Field.all.count else {
      throw ScheduleError(
        offset: 0,
        message:
          "has \(fields.count) field\(fields.count == 1 ? "" : "s"), not 5: minute, hour, day"
          + " of the month, month, day of the week",
        suggestion: fields.count == 6
          ? "leave the field of seconds out" : "write `0 3 * * *` for every day at 3:00")
    }
    var sets: [UInt64] = []
    for (field, word) in zip(Field.all, fields) { sets.append(try field.set(of: word)) }
    // Sunday has a second number, 7.
    let weekdays = (sets[4] | (sets[4] >> 7)) & 0x7F
    self.init(
      text: text, minutes: sets[0], hours: sets[1], days: sets[2], months: sets[3],
      weekdays: weekdays,
      eitherDay: !fields[2].text.hasPrefix("*") && !fields[4].text.hasPrefix("*"))
    guard next(after: 0) != nil else {
      throw ScheduleError(
        offset: fields[2].offset, message: "never comes: no such month has that day",
        suggestion: "the last days of months are 28 to 31")
    }
  }

  private static let named = [
    "@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
  ]

  private static func unknownName(_ text: String) -> ScheduleError {
    ScheduleError(
      offset: 0,
      message: text.lowercased() == "@reboot"
        ? "can't be `@reboot`: that is no time" : "can't be `\(text.prefix(20))`",
      suggestion: text.lowercased() == "@reboot"
        ? "`autostart: true` starts a worker with the daemon"
        : "known: @hourly, @daily, @weekly, @monthly, @yearly")
  }

  /// A field of the text, and its offset in Unicode scalars.
  struct FieldText {
    var text: String
    var offset: Int
  }

  private static func fields(of text: String) -> [FieldText] {
    var result: [FieldText] = []
    var current = ""
    for (offset, scalar) in text.unicodeScalars.enumerated() {
      if scalar == " " || scalar == "\t" {
        if !current.isEmpty {
          result.append(FieldText(text: current, offset: offset - current.count))
        }
        current = ""
      } else {
        current.unicodeScalars.append(scalar)
      }
    }
    let length = text.unicodeScalars.count
    if !current.isEmpty { result.append(FieldText(text: current, offset: length - current.count)) }
    return result
  }
}

extension CalendarSchedule {
  /// One of the five fields.
  struct Field {
    var name: String
    var range: ClosedRange<Int>
    /// Names for the values, from the lowest value on.
    var names: [String] = []

    static let all = [
      Field(name: "minute", range: 0...59), Field(name: "hour", range: 0...23),
      Field(name: "day of the month", range: 1...31),
      Field(
        name: "month", range: 1...12,
        names: [
          "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        ]),
      Field(
        name: "day of the week", range: 0...7,
        names: ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
    ]

    func set(of word: FieldText) throws(ScheduleError) -> UInt64 {
      var set: UInt64 = 0
      var offset = word.offset
      for item in word.text.split(separator: ",", omittingEmptySubsequences: false) {
        set |= try values(FieldText(text: String(item), offset: offset))
        offset += item.unicodeScalars.count + 1
      }
      return set
    }

    /// The values of an item between commas: `*`, `5`, `mon-fri`, `*/10`, `0-30/5`.
    private func values(_ word: FieldText) throws(ScheduleError) -> UInt64 {
      let halves = word.text.split(separator: "/", omittingEmptySubsequences: false)
      guard halves.count <= 2 else { throw wrong(word) }
      var step = 1
      if halves.count == 2 {
        guard let number = number(halves[1]), (1...range.upperBound).contains(number) else {
          throw wrong(word, reason: "has a step that isn't from 1 to \(range.upperBound)")
        }
        step = number
      }
      let span = try self.span(halves.first ?? "", in: word, stepped: halves.count == 2)
      return stride(from: span.lowerBound, through: span.upperBound, by: step)
        .reduce(0) { $0 | (1 << UInt64($1)) }
    }

    private func span(
      _ text: Substring, in word: FieldText, stepped: Bool
    ) throws(ScheduleError) -> ClosedRange<Int> {
      // With 0 to 7, Sunday would come twice.
      let whole = range.lowerBound...(range.upperBound == 7 ? 6 : range.upperBound)
      if text == "*" { return whole }
      let ends = text.split(separator: "-", omittingEmptySubsequences: false)
      guard ends.count <= 2, let first = ends.first, let low = value(first) else {
        throw wrong(word)
      }
      guard ends.count == 2 else { return stepped ? low...max(low, whole.upperBound) : low...low }
      guard let high = value(ends[1]) else { throw wrong(word) }
      guard low <= high else {
        throw wrong(
          word, reason: "ends before it begins",
          suggestion: "write `\(low)-\(whole.upperBound),\(whole.lowerBound)-\(high)`")
      }
      return low...high
    }

    private func value(_ text: Substring) -> Int? {
      if let index = names.firstIndex(of: text.lowercased()) { return range.lowerBound + index }
      guard let number = number(text), range.contains(number) else { return nil }
      return number
    }

    private func number(_ text: Substring) -> Int? {
      text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        ? Int(text) : nil
    }

    private func wrong(
      _ word: FieldText, reason: String? = nil, suggestion: String? = nil
    ) -> ScheduleError {
      let reason = reason ?? "must be from \(range.lowerBound) to \(range.upperBound)"
      let named =
        names.isEmpty ? nil : "or a name such as `\(names[1])`; `*` stands for all of them"
      return ScheduleError(
        offset: word.offset,
        message: "has a wrong \(name): `\(word.text.prefix(20))` \(reason)",
        suggestion: suggestion ?? named)
    }
  }
}
