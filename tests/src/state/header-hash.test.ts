import { expect, it } from 'vitest';
import { DEFAULT_POLICY } from '../../../placement/index.ts';
import { ClusterState } from '../../../src/state/index.ts';

type Header = ClusterState['header'];

/** Another value of the same type. */
function other(value: unknown): unknown {
  if (typeof value === 'number') return value + 1;
  if (typeof value === 'boolean') return !value;
  if (typeof value === 'string') return `${value}x`;
  return 1;
}

function hashOf(change: Partial<Header>): string {
  const state = new ClusterState();
  state.loadHeader({ ...state.header, ...change });
  return state.stateHash;
}

it('the state hash tells apart states that differ in one counter or one field of the policy alone', () => {
  const header = new ClusterState().header;
  const hashes = new Set([hashOf({})]);
  let expected = 1;
  for (const [key, value] of Object.entries(header)) {
    // The first is taken field by field below; the other is made of the hash itself.
    if (key === 'policy' || key === 'hashAt') continue;
    hashes.add(hashOf({ [key]: other(value) }));
    expected++;
  }
  for (const [key, value] of Object.entries(DEFAULT_POLICY)) {
    hashes.add(hashOf({ policy: { ...DEFAULT_POLICY, [key]: other(value) } }));
    expected++;
  }
  expect(hashes.size).toBe(expected);
});
