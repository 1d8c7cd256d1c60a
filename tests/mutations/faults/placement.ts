import type { Fault } from '../fault.ts';

export const PLACEMENT: readonly Fault[] = [
  {
    what: 'a drained shard waits for the lease of its old leader',
    file: 'placement/promote.ts',
    find: "if (view.move(s)?.step === 'fenced' && view.report(s)?.drained === true) return false;",
    replace: '',
    tests: [
      'tests/placement/plan.test.ts',
      'tests/placement/moves.test.ts',
      'tests/placement/in-flight.test.ts',
    ],
  },
  {
    what: 'a join goes on though its source was promoted',
    file: 'placement/promote.ts',
    find: '![move.to, move.from, move.drops].includes(leader)',
    replace: 'move.to !== leader',
    tests: [
      'tests/placement/plan.test.ts',
      'tests/placement/moves.test.ts',
      'tests/placement/in-flight.test.ts',
      'tests/placement/event-properties.test.ts',
    ],
  },
  {
    what: 'a move that ends with its leader keeps its slot',
    file: 'placement/promote.ts',
    find: 'pass.freeSlot(move.copied, move.from, move.to);',
    replace: '',
    tests: [
      'tests/placement/plan.test.ts',
      'tests/placement/moves.test.ts',
      'tests/placement/in-flight.test.ts',
    ],
  },
  {
    what: 'reported progress does not hold a stall off',
    file: 'placement/moves.ts',
    find: 'const progress = Math.max(move.progressAtMs, view.report(s)?.progressAtMs ?? 0);',
    replace: 'const progress = move.progressAtMs;',
    tests: ['tests/placement/moves.test.ts', 'tests/placement/plan.test.ts'],
  },
  {
    what: 'failed moves are not counted',
    file: 'placement/moves.ts',
    find: 'view.failedMoves(s) + (failed ? 1 : 0)',
    replace: 'view.failedMoves(s)',
    tests: ['tests/placement/moves.test.ts', 'tests/placement/plan.test.ts'],
  },
  {
    what: 'a copy is seated while nobody leads its shard',
    file: 'placement/moves.ts',
    find: 'if (!view.isInSync(s, move.to) || !view.leaderServes(s)) return;',
    replace: 'if (!view.isInSync(s, move.to)) return;',
    tests: [
      'tests/placement/moves.test.ts',
      'tests/placement/plan.test.ts',
      'tests/placement/in-flight.test.ts',
    ],
  },
  {
    what: 'a shard that nobody serves yet is fenced',
    file: 'placement/moves.ts',
    find: "|| state !== 'active' ||",
    replace: '||',
    tests: [
      'tests/placement/moves.test.ts',
      'tests/placement/plan.test.ts',
      'tests/placement/in-flight.test.ts',
    ],
  },
  {
    what: 'a copy goes though the set is within its factor',
    file: 'placement/moves.ts',
    find: 'if (view.copies(s).length <= factor) return { ...move, drops: NONE };',
    replace: '',
    tests: [
      'tests/placement/moves.test.ts',
      'tests/placement/plan.test.ts',
      'tests/placement/factor.test.ts',
      'tests/placement/in-flight.test.ts',
    ],
  },
  {
    what: 'the last choice falls on who leads the most',
    file: 'placement/promote.ts',
    find: '(leads(view, b) < leads(view, a) ? b : a)',
    replace: '(leads(view, b) > leads(view, a) ? b : a)',
    tests: ['tests/placement/plan.test.ts', 'tests/placement/moves.test.ts', 'tests/placement/cases.test.ts'],
  },
  {
    what: 'a draining broker may be named without leave',
    file: 'placement/write.ts',
    find: '(need.allowDraining && row.lifecycle',
    replace: '(row.lifecycle',
    tests: ['tests/placement/write.test.ts'],
  },
  {
    what: 'a broker takes one copy more than its cap',
    file: 'placement/write.ts',
    find: 'copies(id) >= cap',
    replace: 'copies(id) > cap',
    tests: ['tests/placement/write.test.ts'],
  },
  {
    what: 'a copy counts at its destination only',
    file: 'placement/slots.ts',
    find: 'return move.from === null ? [move.to] : [move.to, move.from];',
    replace: 'return [move.to];',
    tests: [
      'tests/placement/write.test.ts',
      'tests/placement/plan.test.ts',
      'tests/placement/moves.test.ts',
      'tests/placement/room.test.ts',
    ],
  },
];
