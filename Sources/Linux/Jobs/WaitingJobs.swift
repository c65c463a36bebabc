/// Jobs in the order in which they will be performed, urgent ones first.
struct WaitingJobs: Sendable {
  private struct Entry: Sendable {
    var job: WorkQueue.Job
    var subject: String?
  }

  private var urgent: [Entry] = []
  private var others: [Entry] = []

  var isEmpty: Bool { urgent.isEmpty && others.isEmpty }

  mutating func append(_ job: @escaping WorkQueue.Job, about subject: String?, isUrgent: Bool) {
    let entry = Entry(job: job, subject: subject)
    guard isUrgent else { return others.append(entry) }
    if let subject { prioritize(subject) }
    urgent.append(entry)
  }

  mutating func prioritize(_ subject: String) {
    guard others.contains(where: { $0.subject == subject }) else { return }
    urgent += others.filter { $0.subject == subject }
    others.removeAll { $0.subject == subject }
  }

  mutating func next() -> WorkQueue.Job? {
    if !urgent.isEmpty { return urgent.removeFirst().job }
    return others.isEmpty ? nil : others.removeFirst().job
  }
}
