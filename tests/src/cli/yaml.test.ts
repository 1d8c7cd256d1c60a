import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { toYaml } from '../../../src/cli/yaml.ts';

describe('toYaml', () => {
  it('reads as it should', () => {
    const value = {
      revision: 3,
      items: [{ shard: 'stream:a/0', inSync: ['b1'], move: null, labels: {} }, []],
      empty: [],
      yes: true,
      word: 'true',
    };
    expect(toYaml(value)).toBe(
      [
        'revision: 3',
        'items:',
        '  - shard: "stream:a/0"',
        '    inSync:',
        '      - b1',
        '    move: null',
        '    labels: {}',
        '  - []',
        'empty: []',
        '"yes": true',
        'word: "true"',
        '',
      ].join('\n'),
    );
  });

  it('is read back as the same value by another parser', () => {
    const value = fc.jsonValue({ maxDepth: 4 }).map((any) => JSON.parse(JSON.stringify(any)) as unknown);
    fc.assert(
      fc.property(value, (any) => {
        expect(parse(toYaml(any))).toEqual(any);
      }),
      { numRuns: 500 },
    );
  });

  it.each([
    'null',
    'Yes',
    'off',
    '~',
    '1',
    '1e3',
    '0x1',
    '.5',
    '-',
    '- a',
    'a: b',
    '#',
    '',
    ' a',
    'a\nb',
    '2001-01-01',
  ])('the string %j stays a string', (text) => {
    expect(parse(toYaml([text]))).toEqual([text]);
    expect(parse(toYaml({ [text]: text }))).toEqual({ [text]: text });
  });
});
