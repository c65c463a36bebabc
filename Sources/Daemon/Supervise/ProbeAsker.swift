import Linux
import Policy
import Supervision

/// A probe's question that is under way on the event loop.
private final class Question {
  let runner: ProbeRunner
  var watch: (descriptor: Descriptor, token: EventLoop.Token, interest: Epoll.Interest)?
  var timeout: EventLoop.Token?
  var answer: ((ProbeRunner.Outcome) -> Void)?

  init(_ runner: ProbeRunner, _ answer: @escaping (ProbeRunner.Outcome) -> Void) {
    self.runner = runner
    self.answer = answer
  }
}

/// Asks the questions of probes. Tests provide their own.
protocol ProbeQuestions: AnyObject {
  /// Asks once. `answer` is called with the answer or the lack of one, and never before this
  /// function returns.
  ///
  /// - Returns: a function that drops the question; then no answer comes.
  func put(
    _ probe: Policy.Probe, to process: WorkerProcess,
    then answer: @escaping (ProbeRunner.Outcome) -> Void
  ) -> () -> Void
}

/// Asks the questions of probes. `QuietQuestion` and readiness decide when. It
/// belongs to the event loop's thread.
final class ProbeAsker: ProbeQuestions {
  private let timers: any Timers
  private let watches: any DescriptorWatches
  /// The questions that are under way.
  private var questions: [ObjectIdentifier: Question] = [:]

  init(_ timers: any Timers, _ watches: any DescriptorWatches) {
    self.timers = timers
    self.watches = watches
  }

  /// The pids of the commands that run as probes. They are children of the daemon, and their
  /// questions have to be notified of their ends.
  var commandPids: [Int32] { questions.values.compactMap(\.runner.commandPid) }

  func put(
    _ probe: Policy.Probe, to process: WorkerProcess,
    then answer: @escaping (ProbeRunner.Outcome) -> Void
  ) -> () -> Void {
    let question = Question(ProbeRunner(starting: probe, of: process), answer)
    questions[ObjectIdentifier(question)] = question
    question.timeout = timers.after(probe.timeout) { [unowned self] in
      question.timeout = nil
      question.runner.expire()
      follow(question)
    }
    if case .ended = question.runner.progress {
      timers.after(.zero) { [unowned self] in follow(question) }
    } else {
      follow(question)
    }
    return { [weak self] in
      guard let self else { return }
      question.answer = nil
      question.runner.cancel()
      follow(question)
    }
  }

  private func follow(_ question: Question) {
    let runner = question.runner
    switch runner.progress {
    case .awaiting(let interest):
      guard let descriptor = runner.descriptor else { return }
      if let watch = question.watch, watch.descriptor === descriptor, watch.interest == interest {
        return
      }
      unwatch(question)
      do throws(SystemCallError) {
        let token = try watches.watch(descriptor, interest, file: #fileID, line: #line) {
          [unowned self] _ in
          // The runner closes its descriptor when it ends. The descriptor is kept open until it is
          // unwatched, because epoll forgets a closed one.
          let held = descriptor
          runner.proceed()
          follow(question)
          withExtendedLifetime(held) {}
        }
        question.watch = (descriptor, token, interest)
      } catch {
        runner.cancel()
        // The caller of `put` doesn't expect an answer before that returns.
        timers.after(.zero) { [unowned self] in follow(question) }
      }
    case .ended(let outcome):
      unwatch(question)
      if let timeout = question.timeout { timers.cancel(timeout) }
      question.timeout = nil
      questions[ObjectIdentifier(question)] = nil
      let answer = question.answer
      question.answer = nil
      answer?(outcome)
    }
  }

  private func unwatch(_ question: Question) {
    guard let watch = question.watch else { return }
    watches.unwatch(watch.descriptor, watch.token)
    question.watch = nil
  }
}
