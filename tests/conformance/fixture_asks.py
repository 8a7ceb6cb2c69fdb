"""The fixture's tools and prompt that ask the client for input, over one or more rounds."""

import mcp_types as types
from fixture_rounds import Call, Question, field, form, sampled_text, sampling, summary
from mcp.shared.exceptions import MCPError

NAME = {"name": {"type": "string"}}
CONFIRM = {"ok": {"type": "boolean"}}


async def ask_sampling(call: Call) -> str:
    """Asks the client's model to answer `prompt`."""
    answers = await call.ask({"answer": sampling(str(call.arguments.get("prompt", "")), 100)})
    return f"LLM response: {sampled_text(answers['answer'])}"


async def ask_elicitation(call: Call) -> str:
    """Asks the user for a name and an address."""
    properties = {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    }
    question = form(str(call.arguments.get("message", "")), properties, ["username", "email"])
    answers = await call.ask({"user": question})
    return f"User response: {summary(answers['user'])}"


async def ask_with_defaults(call: Call) -> str:
    """Asks with a default value for each primitive type (SEP-1034)."""
    properties = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    answers = await call.ask({"profile": form("Check these values", properties, [])})
    return f"Elicitation completed: {summary(answers['profile'])}"


async def ask_with_enums(call: Call) -> str:
    """Asks with the five forms that an enumeration may take (SEP-1330)."""
    options = ["option1", "option2", "option3"]
    titled = [{"const": f"value{n}", "title": f"Option {n}"} for n in (1, 2, 3)]
    properties = {
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }
    answers = await call.ask({"choices": form("Choose", properties, [])})
    return f"Elicitation completed: {summary(answers['choices'])}"


async def ask_name(call: Call) -> str:
    """One elicitation, without any request state."""
    answers = await call.ask({"user_name": form("What is your name?", NAME, ["name"])})
    return f"Hello, {field(answers['user_name'], 'name')}!"


async def ask_capital(call: Call) -> str:
    """One sampling request, without any request state."""
    answers = await call.ask({"capital_question": sampling("What is the capital of France?", 100)})
    return f"The model said: {sampled_text(answers['capital_question'])}"


async def ask_roots(call: Call) -> str:
    """One roots request, without any request state."""
    answers = await call.ask({"client_roots": types.ListRootsRequest()})
    roots = answers["client_roots"]
    uris = [str(root.uri) for root in roots.roots] if isinstance(roots, types.ListRootsResult) else []
    return f"Roots: {', '.join(uris)}"


async def ask_with_state(call: Call) -> str:
    """One elicitation whose request state must come back."""
    await call.ask({"confirm": form("Please confirm", CONFIRM, ["ok"])}, keep_state=True)
    return "state-ok"


async def ask_three_kinds(call: Call) -> str:
    """An elicitation, a sampling request and a roots request in one round."""
    questions: dict[str, Question] = {
        "user_name": form("What is your name?", NAME, ["name"]),
        "greeting": sampling("Generate a greeting", 50),
        "client_roots": types.ListRootsRequest(),
    }
    answers = await call.ask(questions, keep_state=True)
    return f"{sampled_text(answers['greeting'])} {field(answers['user_name'], 'name')}"


async def ask_twice(call: Call) -> str:
    """Two rounds, each with a question of its own; the state carries the first answer into the second."""
    first = await call.ask({"step1": form("Step 1: What is your name?", NAME, ["name"])}, keep_state=True)
    color = {"color": {"type": "string"}}
    second = await call.ask({"step2": form("Step 2: What is your favorite color?", color, ["color"])}, keep_state=True)
    return f"{field(first['step1'], 'name')} likes {field(second['step2'], 'color')}"


async def ask_what_is_declared(call: Call) -> str:
    """Asks only by the means that the client declared for this request."""
    declared = call.ctx.session.client_capabilities
    questions: dict[str, Question] = {}
    if declared is not None and declared.sampling is not None:
        questions["sample"] = sampling("Say hello", 50)
    if declared is not None and declared.elicitation is not None:
        questions["ask"] = form("What is your name?", NAME, ["name"])
    answers = await call.ask(questions, keep_state=True)
    return f"Asked: {', '.join(sorted(answers))}"


async def need_sampling_capability(call: Call) -> str:
    """Refuses a client that did not declare sampling, as a protocol error.

    Raises:
        MCPError: code -32021 when the capability is missing.
    """
    declared = call.ctx.session.client_capabilities
    if declared is None or declared.sampling is None:
        data = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "The client must declare sampling", data)
    return "The client declares sampling"


async def ask_for_prompt(call: Call) -> str:
    """The context that test_input_required_result_prompt asks the user for."""
    context = {"context": {"type": "string"}}
    question = form("What context should the prompt use?", context, ["context"])
    answers = await call.ask({"user_context": question})
    return f"Use this context: {field(answers['user_context'], 'context')}"
