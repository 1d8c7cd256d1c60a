import type { Fault } from '../fault.ts';

export const BROKER: readonly Fault[] = [
  {
    what: 'a fenced shard takes appends',
    file: 'src/broker/led-shard.ts',
    find: "if (this.#closed || state === 'draining') {",
    replace: 'if (this.#closed) {',
    tests: ['tests/src/broker/led-shard.test.ts', 'tests/src/broker/broker.test.ts'],
  },
  {
    what: 'the time since a copy lacks something is never begun again',
    file: 'src/broker/in-sync.ts',
    find: 'if (copy.lack !== null && held < copy.lack.until) return copy;',
    replace: 'if (copy.lack !== null) return copy;',
    tests: ['tests/src/broker/in-sync.test.ts', 'tests/src/broker/in-sync-model.test.ts'],
  },
  {
    what: 'a copy that has gone counts as whole',
    file: 'src/broker/in-sync.ts',
    find: 'known.isAttached && known.end === state.end',
    replace: 'known.end === state.end',
    tests: [
      'tests/src/broker/in-sync.test.ts',
      'tests/src/broker/led-shard.test.ts',
      'tests/src/broker/in-sync-model.test.ts',
    ],
  },
  {
    what: 'a copy may acknowledge more than the leader has',
    file: 'src/broker/led-shard.ts',
    find: ' || end > this.log.end) return;',
    replace: ') return;',
    tests: [
      'tests/src/broker/led-shard.test.ts',
      'tests/src/broker/broker.test.ts',
      'tests/src/broker/in-sync-world.test.ts',
    ],
  },
  {
    what: 'an older process of a follower may follow again',
    file: 'src/broker/led-shard.ts',
    find: 'isOld || !replicas',
    replace: '!replicas',
    tests: [
      'tests/src/broker/led-shard.test.ts',
      'tests/src/broker/broker.test.ts',
      'tests/src/broker/in-sync-world.test.ts',
    ],
  },
  {
    what: 'the end of an old connection detaches the new one',
    file: 'src/broker/led-shard.ts',
    find: 'if (follower?.send !== send) return;',
    replace: 'if (follower === undefined) return;',
    tests: [
      'tests/src/broker/led-shard.test.ts',
      'tests/src/broker/broker.test.ts',
      'tests/src/broker/in-sync-world.test.ts',
    ],
  },
  {
    what: 'the log of an earlier creation of a resource is kept',
    file: 'src/broker/record-store.ts',
    find: 'if (known !== undefined) await this.removeShard(shard);',
    replace: '',
    tests: [
      'tests/src/broker/record-store.test.ts',
      'tests/src/broker/shard-keeper.test.ts',
      'tests/src/broker/broker.test.ts',
    ],
  },
  {
    what: 'what waits when a store fails is never answered',
    file: 'src/broker/record-store.ts',
    find: 'for (const { reject } of this.#waiting.splice(0)) reject(this.#failure);',
    replace: '',
    tests: ['tests/src/broker/record-store.test.ts', 'tests/src/broker/broker-disk.test.ts'],
  },
  {
    what: 'a leader greets a follower whose registration is over',
    file: 'src/broker/copy-source.ts',
    find: 'if (incarnation >= this.#host.incarnationOf(broker)) return false;',
    replace: 'if (incarnation >= 0) return false;',
    tests: [
      'tests/src/broker/copy-source.test.ts',
      'tests/src/broker/broker.test.ts',
      'tests/src/broker/led-shard.test.ts',
      'tests/src/broker/broker-disk.test.ts',
    ],
  },
  {
    what: 'a follower that was refused does not ask again',
    file: 'src/broker/copy-sink.ts',
    find: 'this.#retries.delete(timer);\n          this.#ask(shard, epoch);',
    replace: 'this.#retries.delete(timer);',
    tests: [
      'tests/src/broker/broker.test.ts',
      'tests/src/broker/broker-disk.test.ts',
      'tests/src/broker/in-sync-world.test.ts',
    ],
  },
  {
    what: 'a row is carried out though a newer one has come',
    file: 'src/broker/shard-keeper.ts',
    find: 'if (this.#options.view.assignments.get(shard) !== row) return;',
    replace: '',
    tests: [
      'tests/src/broker/shard-keeper.test.ts',
      'tests/src/broker/broker.test.ts',
      'tests/src/broker/broker-disk.test.ts',
    ],
  },
  {
    what: 'every report counts as accepted',
    file: 'src/broker/reporter.ts',
    find: "if (result === 'accepted') accepted.add(shard);",
    replace: 'void result, accepted.add(shard);',
    tests: ['tests/src/broker/reporter.test.ts', 'tests/src/broker/broker.test.ts'],
  },
  {
    what: 'a request that has been answered keeps its place',
    file: 'src/broker/outbox.ts',
    find: 'this.#requests--;',
    replace: '',
    tests: ['tests/src/broker/reporter.test.ts', 'tests/src/broker/broker.test.ts'],
  },
];
