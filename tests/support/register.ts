import type { Model } from './linearizability.ts';

export type RegisterInput =
  | { readonly type: 'read' }
  | { readonly type: 'write'; readonly value: string }
  | { readonly type: 'cas'; readonly from: string; readonly to: string };

/** `value`: what a read saw (`null`: nothing yet). `swapped`: whether a compare-and-set did. A write answers nothing. */
export type RegisterOutput =
  | { readonly type: 'read'; readonly value: string | null }
  | { readonly type: 'write' }
  | { readonly type: 'cas'; readonly swapped: boolean };

/** One register, empty at first, with read, write and compare-and-set. */
export const registerModel: Model<string | null, RegisterInput, RegisterOutput> = {
  initial: null,
  step(state, input, output) {
    if (input.type === 'read') {
      return output === null || (output.type === 'read' && output.value === state) ? { state } : undefined;
    }
    if (input.type === 'write') return { state: input.value };
    const swaps = state === input.from;
    if (output !== null && !(output.type === 'cas' && output.swapped === swaps)) return undefined;
    return { state: swaps ? input.to : state };
  },
  stateKey: (state) => (state === null ? 'null' : `=${state}`),
  describe(input, output) {
    const answer = output === null ? '?' : describeOutput(output);
    if (input.type === 'cas') return `cas ${input.from} to ${input.to} → ${answer}`;
    return input.type === 'read' ? `read → ${answer}` : `write ${input.value} → ${answer}`;
  },
};

function describeOutput(output: RegisterOutput): string {
  if (output.type === 'read') return output.value ?? 'nothing';
  return output.type === 'cas' ? String(output.swapped) : 'done';
}
