import type { Fault } from '../fault.ts';

export const CLIENT: readonly Fault[] = [
  {
    what: 'a write forgets that an earlier try may have run',
    file: 'src/client/admin-client.ts',
    find: 'uncertain ||= sent',
    replace: 'uncertain = sent',
    tests: ['tests/src/client/admin-client.test.ts', 'tests/src/retries.test.ts'],
  },
  {
    what: 'a write that was refused in the end is said to be unknown',
    file: 'src/client/admin-client.ts',
    find: 'if (write && uncertain && error.retriable)',
    replace: 'if (write && uncertain)',
    tests: ['tests/src/client/admin-client.test.ts', 'tests/src/retries.test.ts'],
  },
  {
    what: 'a watch is not told that its link is lost',
    file: 'src/client/admin-link.ts',
    find: 'this.#pending.clear();\n    this.onLost();',
    replace: 'this.#pending.clear();',
    tests: ['tests/src/client/admin-client.test.ts'],
  },
  {
    what: 'a frame from the node is no sign of life',
    file: 'src/client/broker-connection.ts',
    find: 'if (this.#closed) return;\n    this.heardAtMs = this.#clock.now();',
    replace: 'if (this.#closed) return;',
    tests: [
      'tests/src/client/broker-client.test.ts',
      'tests/src/broker/broker.test.ts',
      'tests/src/control/brokers.test.ts',
    ],
  },
  {
    what: 'an answer that was overtaken shortens the lease',
    file: 'src/client/lease.ts',
    find: 'if (sentAt.monotonicMs + terms.leaseMs < before) return;',
    replace: 'void before;',
    tests: ['tests/src/client/lease.test.ts', 'tests/src/client/broker-client.test.ts'],
  },
  {
    what: 'a broker that has left keeps its lease',
    file: 'src/client/broker-client.ts',
    find: "if (answer.lifecycle === 'left') this.#lease.end();",
    replace: '',
    tests: ['tests/src/client/broker-client.test.ts', 'tests/src/broker/broker.test.ts'],
  },
  {
    what: 'a broker resumes its watch one revision too late',
    file: 'src/client/broker-client.ts',
    find: '{ fromRevision: revision }',
    replace: '{ fromRevision: revision + 1 }',
    tests: ['tests/src/client/broker-client.test.ts', 'tests/src/broker/broker.test.ts'],
  },
  {
    what: 'a row that stops naming the broker stays in its view',
    file: 'src/client/broker-view.ts',
    find: 'else this.#shards.delete(row.shard);',
    replace: '',
    tests: ['tests/src/client/broker-view.test.ts', 'tests/src/broker/broker.test.ts'],
  },
  {
    what: 'a heartbeat that was answered keeps counting as unanswered',
    file: 'src/client/broker-client.ts',
    find: 'if (this.#connection === connection) this.#beatsUnanswered--;',
    replace: '',
    tests: ['tests/src/client/broker-client.test.ts', 'tests/src/broker/broker.test.ts'],
  },
];
