/** JSON values as YAML 1.2 in block style. Strings that YAML could read as anything else are quoted as JSON has them. */
export function toYaml(value: unknown): string {
  return isNested(value) ? `${block(value, '').join('\n')}\n` : `${scalar(value)}\n`;
}

function block(value: object, indent: string): string[] {
  if (Array.isArray(value)) {
    return value.flatMap((item: unknown) => {
      if (!isNested(item)) return [`${indent}- ${scalar(item)}`];
      const [first = '', ...rest] = block(item, `${indent}  `);
      return [`${indent}- ${first.trimStart()}`, ...rest];
    });
  }
  return Object.entries(value)
    .filter(([, item]) => item !== undefined)
    .flatMap(([key, item]: [string, unknown]) =>
      isNested(item)
        ? [`${indent}${scalar(key)}:`, ...block(item, `${indent}  `)]
        : [`${indent}${scalar(key)}: ${scalar(item)}`],
    );
}

/** Whether it takes lines of its own: an object or list with something in it. */
function isNested(value: unknown): value is object {
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0;
}

/** Letters first, then what means nothing to YAML; words that it reads as something else are left out. */
const PLAIN = /^[A-Za-z][A-Za-z0-9_./-]*$/;
const RESERVED = /^(true|false|null|yes|no|on|off|y|n)$/i;

function scalar(value: unknown): string {
  if (value === null || value === undefined) return 'null';
  if (Array.isArray(value)) return '[]';
  if (typeof value === 'object') return '{}';
  if (typeof value !== 'string') return JSON.stringify(value);
  return PLAIN.test(value) && !RESERVED.test(value) ? value : JSON.stringify(value);
}
