// Small chat templates that print tools, calls and results in the form of each family's published templates, written for these
// tests. The renderings were recorded with Python's jinja2 3.1.6 as transformers sets it up: trim_blocks, lstrip_blocks, and
// `tojson` as json.dumps without escapes of its own.

const messages = (assistantCalls: string, tool: string) =>
  `{%- for m in messages %}{%- if m.role == "tool" %}${tool}{%- elif m.tool_calls %}${assistantCalls}` +
  `{%- elif m.role != "system" %}{{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{%- endif %}{%- endfor %}` +
  `{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}`

const system = (definitions: string) =>
  `{{- '<|im_start|>system\\n' }}{%- if messages[0].role == 'system' %}{{- messages[0].content }}{%- endif %}` +
  `{%- if tools %}{{- '\\n<tools>' }}{%- for tool in tools %}${definitions}{%- endfor %}{{- '\\n</tools>' }}{%- endif %}{{- '<|im_end|>\\n' }}`

const result = `{{- '<|im_start|>user\\n<tool_response>\\n' + m.content + '\\n</tool_response><|im_end|>\\n' }}`
const begin = `{{- '<|im_start|>assistant\\n' }}{%- if m.content %}{{- m.content + '\\n' }}{%- endif %}`

const bracketed = (body: string, opening = "") =>
  `{{- bos_token }}{%- if messages[0].role == 'system' %}{{- '[SYSTEM_PROMPT]' + messages[0].content + '[/SYSTEM_PROMPT]' }}{%- endif %}` +
  `{%- if tools %}{{- '[AVAILABLE_TOOLS]' + (tools | tojson) + '[/AVAILABLE_TOOLS]' }}{%- endif %}${opening}` +
  `{%- for m in messages %}{%- if m.role == 'user' %}{{- '[INST]' + m.content + '[/INST]' }}` +
  `{%- elif m.role == 'tool' %}{{- '[TOOL_RESULTS]' + m.content + '[/TOOL_RESULTS]' }}` +
  `{%- elif m.tool_calls %}${body}{{- eos_token }}{%- elif m.role == 'assistant' %}{{- m.content + eos_token }}{%- endif %}{%- endfor %}`

const idNeeded = "{%- if c.id | length != 9 %}{{- raise_exception('ids have nine characters') }}{%- endif %}"

const deepSeek = (call: string) =>
  `{{- bos_token }}{%- for m in messages %}{%- if m.role == 'system' %}{{- m.content }}{%- elif m.role == 'user' %}{{- '<｜User｜>' + m.content }}` +
  `{%- elif m.role == 'tool' %}{{- '<｜tool▁output▁begin｜>' + m.content + '<｜tool▁output▁end｜>' }}` +
  `{%- else %}{%- if messages[loop.index0 - 1].role != 'tool' %}{{- '<｜Assistant｜>' }}{%- endif %}{{- m.content or '' }}` +
  `{%- if m.tool_calls %}{{- '<｜tool▁calls▁begin｜>' }}{%- for c in m.tool_calls %}${call}{%- endfor %}{{- '<｜tool▁calls▁end｜>' }}{%- endif %}` +
  `{{- eos_token }}{%- endif %}{%- endfor %}{%- if messages[-1].role == 'user' %}{{- '<｜Assistant｜>' }}{%- endif %}`

/** Gemma: texts between markers, keys sorted, results behind the calls in the same turn. */
const gemma = (
  [turn, end, call, callEnd, result, resultEnd, marker]: ReadonlyArray<string>,
  definition: string,
) =>
  `{%- macro value(v) -%}{%- if v is string -%}{{- '${marker}' + v + '${marker}' -}}{%- elif v is boolean -%}{{- 'true' if v else 'false' -}}` +
  `{%- elif v is mapping -%}{{- '{' -}}{%- for key, one in v | dictsort -%}{{- (',' if not loop.first else '') + key + ':' -}}{{- value(one) -}}{%- endfor -%}{{- '}' -}}` +
  `{%- elif v is sequence -%}{{- '[' -}}{%- for one in v -%}{{- ',' if not loop.first else '' -}}{{- value(one) -}}{%- endfor -%}{{- ']' -}}{%- else -%}{{- v -}}{%- endif -%}{%- endmacro -%}` +
  `{{- bos_token }}{{- '${turn}system\n' }}{%- if messages[0].role == 'system' %}{{- messages[0].content }}{%- endif %}` +
  `{%- for tool in tools or [] %}${definition}{%- endfor %}{{- '${end}\n' }}{%- set ns = namespace(open=false) %}` +
  `{%- for m in messages %}{%- if m.role == 'tool' %}{{- '${result}response:' + m.name + '{value:' }}{{- value(m.content) -}}{{- '}${resultEnd}' }}` +
  `{%- elif m.role != 'system' %}{%- if not ns.open %}{{- '${turn}' + ('model' if m.role == 'assistant' else m.role) + '\n' }}{%- endif %}` +
  `{%- if m.tool_calls %}{%- for c in m.tool_calls %}{{- '${call}call:' + c.function.name }}{{- value(c.function.arguments) -}}{{- '${callEnd}' }}{%- endfor %}{%- set ns.open = true %}` +
  `{%- else %}{{- m.content + '${end}\n' }}{%- set ns.open = false %}{%- endif %}{%- endif %}{%- endfor %}` +
  `{%- if add_generation_prompt and not ns.open %}{{- '${turn}model\n' }}{%- endif %}`

const glm = (line: string) =>
  `{{- '[gMASK]<sop>' }}{%- if tools %}{{- '<|system|>\n<tools>' }}{%- for tool in tools %}{{- '\n' + (tool | tojson) }}{%- endfor %}{{- '\n</tools>' }}{%- endif %}` +
  `{%- for m in messages %}{%- if m.role == 'tool' %}{{- '<|observation|>${line}<tool_response>' + m.content + '</tool_response>' }}` +
  `{%- elif m.role == 'assistant' %}{{- '<|assistant|>' + (m.content or '') }}{%- for c in m.tool_calls or [] %}{{- ('${line}' if not loop.first or m.content else '') + '<tool_call>' + c.function.name + '${line}' }}` +
  `{%- for key, v in c.function.arguments | items %}{{- '<arg_key>' + key + '</arg_key>${line}<arg_value>' }}{{- v if v is string else v | tojson }}{{- '</arg_value>${line}' }}{%- endfor %}{{- '</tool_call>' }}{%- endfor %}` +
  `{%- else %}{{- '<|' + m.role + '|>' + m.content }}{%- endif %}{%- endfor %}{%- if add_generation_prompt %}{{- '<|assistant|>' }}{%- endif %}`

export const templates: Readonly<Record<string, string>> = {
  hermes:
    system("{{- '\\n' + (tool | tojson) }}") +
    messages(
      `${begin}{%- for c in m.tool_calls %}{%- if not loop.first %}{{- '\\n' }}{%- endif %}` +
        `{{- '<tool_call>\\n{"name": "' + c.function.name + '", "arguments": ' + (c.function.arguments | tojson) + '}\\n</tool_call>' }}` +
        `{%- endfor %}{{- '<|im_end|>\\n' }}`,
      result,
    ),
  "qwen-xml":
    system(
      "{{- '\\n<function>\\n<name>' + tool.function.name + '</name>' }}" +
        "{%- for key, schema in tool.function.parameters.properties | items %}{{- '\\n<parameter>' + key }}" +
        "{%- for other in schema %}{{- '\\n<' + other + '>' + (schema[other] | string) + '</' + other + '>' }}{%- endfor %}{%- endfor %}{{- '\\n</function>' }}",
    ) +
    messages(
      `${begin}{%- for c in m.tool_calls %}{%- if not loop.first %}{{- '\\n' }}{%- endif %}` +
        "{{- '<tool_call>\\n<function=' + c.function.name + '>\\n' }}" +
        "{%- for key, value in c.function.arguments | items %}{{- '<parameter=' + key + '>\\n' }}" +
        "{{- value if value is string else value | tojson }}{{- '\\n</parameter>\\n' }}{%- endfor %}" +
        "{{- '</function>\\n</tool_call>' }}{%- endfor %}{{- '<|im_end|>\\n' }}",
      result,
    ),
  llama3:
    "{{- bos_token }}{%- if messages[0].role == 'system' %}{{- '<|start_header_id|>system<|end_header_id|>\\n\\n' + messages[0].content + '<|eot_id|>' }}{%- endif %}" +
    "{%- for m in messages %}{%- if m.role != 'system' %}{{- '<|start_header_id|>' + ('ipython' if m.role == 'tool' else m.role) + '<|end_header_id|>\\n\\n' }}" +
    "{%- if m.role == 'user' and tools and loop.index0 < 2 %}{%- for tool in tools %}{{- tool | tojson(indent=4) }}{{- '\\n\\n' }}{%- endfor %}{%- endif %}" +
    "{%- if m.tool_calls %}{%- if m.tool_calls | length != 1 %}{{- raise_exception('one call at once') }}{%- endif %}{%- set f = m.tool_calls[0].function %}" +
    `{{- '{"name": "' + f.name + '", "parameters": ' + (f.arguments | tojson) + '}' }}` +
    "{%- elif m.role == 'tool' %}{{- m.content | tojson }}{%- else %}{{- m.content }}{%- endif %}{{- '<|eot_id|>' }}{%- endif %}{%- endfor %}" +
    "{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif %}",
  mistral: bracketed(
    `{{- '[TOOL_CALLS][' }}{%- for c in m.tool_calls %}${idNeeded}{%- if not loop.first %}{{- ', ' }}{%- endif %}` +
      `{{- (c.function | tojson)[:-1] + ', "id": "' + c.id + '"}' }}{%- endfor %}{{- ']' }}`,
  ),
  "mistral-args": bracketed(
    "{{- m.content }}{%- for c in m.tool_calls %}{{- '[TOOL_CALLS]' + c.function.name + '[ARGS]' + (c.function.arguments if c.function.arguments is string else c.function.arguments | tojson) }}{%- endfor %}",
  ),
  "mistral-call-id": bracketed(
    `{{- m.content }}{%- for c in m.tool_calls %}${idNeeded}{{- '[TOOL_CALLS]' + c.function.name + '[CALL_ID]' + c.id + '[ARGS]' + (c.function.arguments | tojson) }}{%- endfor %}`,
  ),
  "deepseek-r1": deepSeek(
    "{%- if not loop.first %}{{- '\\n' }}{%- endif %}{{- '<｜tool▁call▁begin｜>' + c.type + '<｜tool▁sep｜>' + c.function.name + '\\n```json\\n' + (c.function.arguments | tojson) + '\\n```<｜tool▁call▁end｜>' }}",
  ),
  "deepseek-v3.1": deepSeek(
    "{{- '<｜tool▁call▁begin｜>' + c.function.name + '<｜tool▁sep｜>' + (c.function.arguments | tojson) + '<｜tool▁call▁end｜>' }}",
  ),
  gemma4: gemma(
    ["<|turn>", "<turn|>", "<|tool_call>", "<tool_call|>", "<|tool_response>", "<tool_response|>", '<|"|>'],
    "{{- '<|tool>declaration:' + tool.function.name }}{{- value(tool.function.parameters) -}}{{- '<tool|>' }}",
  ),
  functiongemma: gemma(
    [
      "<start_of_turn>",
      "<end_of_turn>",
      "<start_function_call>",
      "<end_function_call>",
      "<start_function_response>",
      "<end_function_response>",
      "<escape>",
    ],
    "{{- '<start_function_declaration>declaration:' + tool.function.name }}{{- value(tool.function.parameters) -}}{{- '<end_function_declaration>' }}",
  ),
  glm: glm("\\n"),
  "glm-4.7": glm(""),
  kimi:
    "{%- if tools %}{{- '<|im_system|>tool_declare<|im_middle|>' + (tools | tojson) + '<|im_end|>' }}{%- endif %}" +
    "{%- for m in messages %}{{- '<|im_' + ('system' if m.role == 'tool' else m.role) + '|>' + m.role + '<|im_middle|>' }}" +
    "{%- if m.role == 'tool' %}{{- '## Return of ' + m.tool_call_id + '\\n' + m.content }}{%- elif m.content %}{{- m.content }}{%- endif %}" +
    "{%- if m.tool_calls %}{{- '<|tool_calls_section_begin|>' }}{%- for c in m.tool_calls %}{{- '<|tool_call_begin|>functions.' + c.function.name + ':' + (loop.index0 | string) + '<|tool_call_argument_begin|>' + (c.function.arguments | tojson) + '<|tool_call_end|>' }}{%- endfor %}{{- '<|tool_calls_section_end|>' }}{%- endif %}" +
    "{{- '<|im_end|>' }}{%- endfor %}{%- if add_generation_prompt %}{{- '<|im_assistant|>assistant<|im_middle|>' }}{%- endif %}",
  general:
    "{%- for m in messages %}{{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{%- endfor %}" +
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}",
}
