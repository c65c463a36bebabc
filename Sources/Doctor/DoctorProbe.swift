import Control

/// One check, with the facts that are known before it is tried.
struct Probe: Sendable {
  var id: String
  var name: String
  var need = DoctorCheck.Need.useful
  var lost: String
  var enable: String
  /// Tries the mechanism. An error that it throws means `missing`.
  var attempt: @Sendable (Examination) throws -> Finding

  func run(_ examination: Examination) -> DoctorCheck {
    let finding: Finding
    do { finding = try attempt(examination) } catch { finding = .missing("\(error)") }
    return DoctorCheck(
      id: id, name: name, need: need, result: finding.result, found: finding.detail, lost: lost,
      enable: enable)
  }
}

/// The result of a probe.
struct Finding: Hashable, Sendable {
  var result: DoctorCheck.Result
  var detail: String

  static func works(_ detail: String) -> Finding { Finding(result: .works, detail: detail) }
  static func limited(_ detail: String) -> Finding { Finding(result: .limited, detail: detail) }
  static func missing(_ detail: String) -> Finding { Finding(result: .missing, detail: detail) }
}

/// A mechanism works differently from the kernel's documentation; the text names the difference.
struct ProbeFailure: Error, CustomStringConvertible {
  var description: String

  init(_ description: String) { self.description = description }
}
