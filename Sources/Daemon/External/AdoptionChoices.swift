import Control
import Policy
import PolicyFile
import Supervision

extension AdoptionSpecification {
  var chosenPolicy: AdoptedPolicy {
    AdoptedPolicy(name: policy, settings: settings ?? [], isShadow: shadow ?? false)
  }
}

extension AdoptedPolicy {
  /// The choice for the log: ` (policy server, hibernate.after=5m, shadow mode)`.
  var logSuffix: String {
    let parts = (name.map { ["policy \($0)"] } ?? []) + settings + (isShadow ? ["shadow mode"] : [])
    return parts.isEmpty ? "" : " (\(parts.joined(separator: ", ")))"
  }
}

extension WorkerUnit {
  /// The policy that `run` or `adopt` has chosen, over the machine's policy.
  func chosenPolicy(over machine: LifecyclePolicy) throws(SettingError) -> LifecyclePolicy {
    if let chosen = external?.chosen {
      // A policy that was named isn't read again.
      return chosen.name == nil
        ? try chosen.resolved(nil, over: machine) : configuration.policy
    }
    var unit = configuration
    unit.policy = machine
    return try WorkerSettings(configuration.settings, environment: environment)
      .applied(to: unit, environment: environment).policy
  }
}

extension WorkerRecord {
  /// The configuration of a worker that isn't in `dormouse.yaml`. It may read the file of a policy,
  /// so it is for the daemon's start only.
  func undeclared(
    in configuration: DaemonConfiguration, machine: LifecyclePolicy,
    environment: [String: String], log: DaemonLog
  ) -> WorkerConfiguration {
    let plain = WorkerConfiguration(
      name: name, command: command, directory: directory,
      importance: min(max(importance, 0), 100),
      policy: policy(in: configuration, machine: machine, log: log))
    if external != nil { return plain }
    do throws(SettingError) {
      return try WorkerSettings(settings, environment: environment)
        .applied(to: plain, environment: environment)
    } catch {
      log(.warning, "\(name): the values of `run --set` can't be applied any more: \(error)")
      return plain
    }
  }

  /// The choice of the request that adopted the worker.
  var chosenPolicy: AdoptedPolicy {
    AdoptedPolicy(name: policy, settings: settings, isShadow: isShadow)
  }

  /// The policy of a worker that isn't in the configuration. It may read the file of a policy, so
  /// it is for the daemon's start only.
  private func policy(
    in configuration: DaemonConfiguration, machine: LifecyclePolicy, log: DaemonLog
  ) -> LifecyclePolicy {
    guard external != nil, rule == nil else {
      return configuration.adoption.policy(ofRule: rule, machine)
    }
    do throws(SettingError) {
      let named = try chosenPolicy.load(from: configuration.library)
      return try chosenPolicy.resolved(named, over: machine)
    } catch {
      log(
        .warning,
        "\(name): decisions about it are only logged: its policy can't be applied any more: "
          + "\(error); release it and adopt it again")
      var policy = machine
      policy.mode = .shadow
      return policy
    }
  }
}

// These functions handle health checks that are answered while an adopted worker sleeps. The
// request for its adoption names them.

extension AdoptionSpecification {
  func answers() throws(AdoptionRefusal) -> [AsleepAnswer] {
    var answers: [AsleepAnswer] = []
    for text in healthChecks ?? [] {
      do throws(AsleepAnswerError) {
        let answer = try AsleepAnswer(text: text)
        if !answers.contains(answer) { answers.append(answer) }
      } catch { throw .malformed("not adopted: \(error)") }
    }
    return answers
  }
}

extension WorkerRecord {
  /// Records what the request for the worker's adoption has chosen, except the policy.
  mutating func keepAdoption(of configuration: WorkerConfiguration) {
    wakeWith = configuration.wakeWith
    healthChecks = configuration.healthChecksWhileAsleep.map(\.text)
  }

  func giveBackAdoption(to configuration: inout WorkerConfiguration) {
    configuration.wakeWith = wakeWith
    configuration.healthChecksWhileAsleep = healthChecks.compactMap {
      // If a recorded check can't be read, it wakes the worker, as any connection does.
      try? AsleepAnswer(text: $0)
    }
  }
}
