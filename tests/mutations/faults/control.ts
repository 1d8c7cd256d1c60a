import type { Fault } from '../fault.ts';

export const CONTROL: readonly Fault[] = [
  {
    what: 'an older session of a broker counts as a sign of life',
    file: 'src/control/liveness.ts',
    find: 'if (contact.session !== null && isOlderSession(session, contact.session)) return false;',
    replace: '',
    tests: [
      'tests/src/control/liveness.test.ts',
      'tests/src/control/registration.test.ts',
      'tests/src/control/brokers.test.ts',
    ],
  },
  {
    what: 'a broker that is heard again still counts as disconnected',
    file: 'src/control/liveness.ts',
    find: 'contact.session = session;\n    contact.disconnected = false;',
    replace: 'contact.session = session;',
    tests: [
      'tests/src/control/liveness.test.ts',
      'tests/src/control/registration.test.ts',
      'tests/src/control/brokers.test.ts',
    ],
  },
  {
    what: 'a shard that is removed goes on moving',
    file: 'src/control/tenure.ts',
    find: 'this.moving.delete(change.shard);',
    replace: '',
    tests: [
      'tests/src/control/operator.test.ts',
      'tests/src/control/live-plan.test.ts',
      'tests/src/control/open-plan.test.ts',
    ],
  },
  {
    what: 'no pass follows one that wrote something',
    file: 'src/control/passes.ts',
    find: 'if (planned > 0) this.#changed = true;',
    replace: '',
    tests: ['tests/src/control/passes.test.ts', 'tests/src/control/open-plan.test.ts'],
  },
  {
    what: 'a pass that failed is not tried again',
    file: 'src/control/passes.ts',
    find: 'this.#changed = true;\n        stats.failedPasses++',
    replace: 'stats.failedPasses++',
    tests: ['tests/src/control/passes.test.ts'],
  },
  {
    what: 'who joins while a quorum round runs is answered by it',
    file: 'src/control/rounds.ts',
    find: 'for (const waiter of batch) waiter.resolve();',
    replace: 'for (const waiter of [...batch, ...this.#waiting.splice(0)]) waiter.resolve();',
    tests: ['tests/src/control/brokers.test.ts', 'tests/src/control/registration.test.ts'],
  },
  {
    what: 'a node that lost its leadership meanwhile gives a lease',
    file: 'src/control/broker-service.ts',
    find: 'await tenure.rounds.join();\n  tenure.assertLeading();',
    replace: 'await tenure.rounds.join();',
    tests: ['tests/src/control/brokers.test.ts', 'tests/src/control/registration.test.ts'],
  },
  {
    what: 'a broker that has left is asked to leave again',
    file: 'src/control/broker-service.ts',
    find: "if (before?.incarnation === incarnation && before.lifecycle === 'left') return { lifecycle: 'left' };",
    replace: '',
    tests: ['tests/src/control/brokers.test.ts', 'tests/src/control/registration.test.ts'],
  },
  {
    what: 'a stall of this process counts as the silence of brokers',
    file: 'src/control/liveness.ts',
    find: 'Math.min(this.#clock.now() - this.#tickedAtMs, this.tickMs * STALL_TICKS)',
    replace: '(this.#clock.now() - this.#tickedAtMs)',
    tests: ['tests/src/control/liveness.test.ts', 'tests/src/control/brokers.test.ts'],
  },
];
