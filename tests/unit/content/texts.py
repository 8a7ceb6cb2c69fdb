"""Texts of many kinds to count tokens of, all made here or read from the standard library of the Python
that runs."""

import base64
import hashlib
import inspect
import json
import random
import uuid
from collections.abc import Callable

PROSE = """The tide comes in twice a day, and with it the barges that carry gravel up the river. Nobody
in the village
remembers when the first landing was built, but the stones at its foot are older than the church. In
winter, when fog
lies over the water, the bargemen ring a small bell, and the children run down to see who is coming. "It
is only the
gravel," their mothers say, and yet they look out of the window as well. Measured over a year, about 12,
400 tons pass
the lock, three quarters of them in the dry months between May and September.
"""
CHINESE = """这条河每天涨潮两次,运送砾石的驳船也随之而来。村里没有人记得第一个码头是什么时候建的,
但它脚下的石头比教堂还要古老。
冬天,当大雾笼罩水面时,船夫会敲响一口小钟,孩子们就跑下去看是谁来了。一年之中,大约有一万两千吨货物通过船闸,
其中四分之三是在五月到九月的
旱季。系统返回的数据包括名称、地址、价格和更新时间,请在使用之前检查格式是否正确。
"""
JAPANESE = """潮は一日に二度満ちて、砂利を運ぶはしけも一緒に川をさかのぼってきます。
村には最初の船着き場がいつ建てられたのかを覚えている人は
いませんが、その足元の石は教会よりも古いものです。冬になって霧が水面をおおうと、
船頭たちは小さな鐘を鳴らし、子どもたちは誰が来るのかを見に走って
いきます。データベースに接続できませんでした。設定ファイルを確認してください。
"""
KOREAN = """조수는 하루에 두 번 밀려오고, 자갈을 나르는 바지선도 함께 강을 거슬러 올라옵니다. 마을에서는
첫 선착장이 언제 지어졌는지 기억하는
사람이 없지만, 그 밑의 돌은 교회보다 오래되었습니다. 겨울에 안개가 물 위에 깔리면 뱃사공들은 작은 종을
울리고 아이들은 누가 오는지 보러 뛰어
내려갑니다. 데이터베이스에 연결할 수 없습니다. 설정 파일을 확인하십시오.
"""
RUSSIAN = """Прилив приходит дважды в день, а с ним и баржи, которые везут гравий вверх по реке. Никто в
деревне не помнит,
когда построили первую пристань, но камни у её основания старше церкви. Зимой, когда над водой лежит
туман, лодочники
звонят в маленький колокол, и дети бегут вниз посмотреть, кто идёт. Не удалось подключиться к базе данных.
"""
GREEK = """Η παλίρροια έρχεται δύο φορές την ημέρα και μαζί της οι φορτηγίδες που ανεβάζουν χαλίκι στο
ποτάμι. Κανείς στο
χωριό δεν θυμάται πότε χτίστηκε η πρώτη αποβάθρα, αλλά οι πέτρες στα θεμέλιά της είναι παλαιότερες από
την εκκλησία.
"""
ARABIC = """يأتي المد مرتين في اليوم، ومعه المراكب التي تحمل الحصى إلى أعلى النهر. لا أحد في القرية
يتذكر متى بُني الرصيف
الأول، لكن الحجارة عند أسفله أقدم من الكنيسة. في الشتاء، عندما يغطي الضباب الماء، يقرع البحارة جرسًا صغيرًا.
"""
HEBREW = """הגאות באה פעמיים ביום, ואיתה הדוברות שנושאות חצץ במעלה הנהר. איש בכפר אינו זוכר מתי נבנה
הרציף הראשון, אבל
האבנים שלמרגלותיו עתיקות מן הכנסייה. בחורף, כשערפל רובץ על המים, הספנים מצלצלים בפעמון קטן.
"""
HINDI = """ज्वार दिन में दो बार आता है और उसके साथ वे नावें भी आती हैं जो नदी में ऊपर की ओर बजरी ले जाती हैं। गाँव में किसी को याद
नहीं कि पहला घाट कब बना था, लेकिन उसके नीचे के पत्थर गिरजाघर से भी पुराने हैं। सर्दियों में जब पानी पर कोहरा छा जाता है,
नाविक घंटी बजाते हैं।
"""
THAI = """น้ำขึ้นวันละสองครั้ง และเรือบรรทุกกรวดก็ขึ้นมาตามแม่น้ำพร้อมกัน ไม่มีใครในหมู่บ้านจำได้ว่าท่าเรือแห่งแรกสร้างขึ้นเมื่อใด
แต่หินที่ฐานของมันเก่าแก่กว่าโบสถ์ ในฤดูหนาว เมื่อหมอกปกคลุมผืนน้ำ คนเรือจะสั่นกระดิ่งเล็ก ๆ
"""
GERMAN = """Zweimal am Tag kommt die Flut, und mit ihr kommen die Lastkähne, die den Kies flussaufwärts
bringen. Niemand im
Dorf weiß noch, wann die erste Anlegestelle gebaut wurde, doch die Steine an ihrem Fuß sind so alt wie
die Kirche. Im
Winter, wenn Nebel über dem Wasser liegt, läuten die Schiffer eine kleine Glocke. Die
Datenbankverbindung schlug fehl.
"""
VIETNAMESE = """Thủy triều lên hai lần mỗi ngày, và cùng với nó là những chiếc sà lan chở sỏi ngược dòng
sông. Không ai trong
làng nhớ bến tàu đầu tiên được xây khi nào, nhưng những viên đá dưới chân nó còn cổ hơn cả nhà thờ. Vào
mùa đông, khi
sương mù phủ trên mặt nước, những người lái thuyền rung một chiếc chuông nhỏ.
"""
EMOJI = (
    "🚀 launched 🎉🎉 done ✅ failed ❌ 👩‍👩‍👧 family 🇩🇪 🇯🇵 flags "
    "👍🏽 ok 🔥🔥🔥 💡 idea 📈 up 📉 down ⚠️ careful 😀😂🤔🙏 "
)


def _rows(count: int) -> list[dict[str, object]]:
    chance = random.Random(7)
    towns = ["Oldbridge", "Fenwick", "Marsh End", "Tidewater", "Lockhead", "Quarry Hill"]
    return [
        {
            "id": 10_000 + number,
            "town": chance.choice(towns),
            "weight_kg": round(chance.uniform(5, 900), 2),
            "loaded": chance.random() > 0.4,
            "at": f"2026-0{chance.randint(1, 9)}-{chance.randint(10, 28)}T0{chance.randint(1, 9)}:15:3{number % 7}Z",
            "note": chance.choice(["", "bell rung twice", "fog on the water", "waits at the lock"]),
            "tags": chance.sample(["gravel", "sand", "coal", "empty"], 2),
        }
        for number in range(count)
    ]


def _csv() -> str:
    rows = _rows(150)
    lines = [",".join(str(row[name]) for name in rows[0] if name != "tags") for row in rows]
    return "\n".join(["id,town,weight_kg,loaded,at,note", *lines])


def _log() -> str:
    chance = random.Random(3)
    levels = ["INFO", "INFO", "INFO", "WARNING", "ERROR"]
    return "\n".join(
        f"2026-03-0{chance.randint(1, 9)} 12:{chance.randint(10, 59)}:{chance.randint(10, 59)},"
        f"{chance.randint(100, 999)} "
        f"{chance.choice(levels)} [worker-{chance.randint(1, 9)}] lock.gate: opened in {chance.randint(3, 900)} ms "
        f"(request {uuid.UUID(int=chance.getrandbits(128))})"
        for _ in range(120)
    )


def _bytes(count: int) -> bytes:
    return random.Random(5).randbytes(count)


def _source(module: str) -> Callable[[], str]:
    return lambda: inspect.getsource(__import__(module, fromlist=["x"]))[:40_000]


def _doc(module: str) -> Callable[[], str]:
    return lambda: "\n".join(
        inspect.getdoc(thing) or "" for _, thing in sorted(vars(__import__(module, fromlist=["x"])).items())
    )[:40_000]


HTML = "".join(
    f'<tr class="row-{n % 2}"><td><a href="/barges/{n}?sort=asc">Barge {n}</a></td><td>{n * 37}</td></tr>\n'
    for n in range(80)
)
MARKDOWN = "".join(
    f"## Lock {n}\n\nThe gate opens **twice** a day; see [it](#lock-{n}).\n\n| day | tons |\n|---|---:|\n| Mon | "
    f"{n * 11} |\n\n- check the bell\n- write the `log`\n\n"
    for n in range(30)
)
SCRIPT = "".join(
    f"function f{n}(t,e){{var r=t[e+{n}];return r&&r.length>0?r.map((function(t){{return t.id}})):null}}"
    for n in range(60)
)

KINDS: dict[str, Callable[[], str]] = {
    "prose": lambda: PROSE * 3,
    "documentation": _doc("argparse"),
    "more documentation": _doc("logging"),
    "code": _source("argparse"),
    "more code": _source("json.decoder"),
    "data code": _source("mimetypes"),
    "minified script": lambda: SCRIPT,
    "compact JSON": lambda: json.dumps(_rows(80), separators=(",", ":")),
    "JSON": lambda: json.dumps(_rows(80)),
    "indented JSON": lambda: json.dumps(_rows(60), indent=2),
    "CSV": _csv,
    "log": _log,
    "HTML": lambda: HTML,
    "Markdown": lambda: MARKDOWN,
    "base64": lambda: base64.b64encode(_bytes(9000)).decode(),
    "hexadecimal": lambda: _bytes(6000).hex(),
    "capital hexadecimal": lambda: _bytes(5000).hex(" ").upper(),
    "capital digests": lambda: _bytes(4000).hex().upper(),
    "names in capitals": lambda: "\n".join(
        f"LOCK_{n}_{town.upper().replace(' ', '_')}" for n in range(60) for town in ("Marsh End", "Fenwick")
    ),
    "digests": lambda: "\n".join(hashlib.sha256(bytes([n])).hexdigest() for n in range(120)),
    "identifiers": lambda: "\n".join(str(uuid.UUID(bytes=_bytes(16 * 200)[n * 16 : n * 16 + 16])) for n in range(200)),
    "numbers": lambda: " ".join(str(int.from_bytes(_bytes(3000)[n : n + 3])) for n in range(0, 2900, 3)),
    "digits": lambda: str(int.from_bytes(_bytes(1700))),
    "random letters": lambda: "".join(chr(97 + byte % 26) for byte in _bytes(4000)),
    "random words": lambda: "".join(" abcdefghijklmnopqrstuvwxyz"[byte % 27] for byte in _bytes(4000)),
    "random punctuation": lambda: "".join("!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~"[byte % 31] for byte in _bytes(3000)),
    "random ASCII": lambda: "".join(chr(33 + byte % 94) for byte in _bytes(4000)),
    "rules": lambda: "\n".join(
        f"{mark * 78}\n{mark * 3} {word} {mark * 3}" for mark in "=-#*" for word in PROSE.split()[:9]
    ),
    "aligned table": lambda: "\n".join(
        f"{row['id']!s:<24}{row['town']!s:>32}{row['weight_kg']!s:>40}" for row in _rows(60)
    ),
    "Chinese": lambda: CHINESE * 3,
    "Japanese": lambda: JAPANESE * 3,
    "Korean": lambda: KOREAN * 3,
    "Russian": lambda: RUSSIAN * 3,
    "Greek": lambda: GREEK * 3,
    "Arabic": lambda: ARABIC * 3,
    "Hebrew": lambda: HEBREW * 3,
    "Hindi": lambda: HINDI * 3,
    "Thai": lambda: THAI * 3,
    "German": lambda: GERMAN * 3,
    "Vietnamese": lambda: VIETNAMESE * 3,
    "emoji": lambda: EMOJI * 6,
    "Chinese JSON": lambda: json.dumps([{"标题": CHINESE, "序号": n} for n in range(3)], ensure_ascii=False),
    "only emoji": lambda: "".join(chr(0x1F300 + byte) for byte in _bytes(900)),
    "mixed": lambda: (PROSE + CHINESE + json.dumps(_rows(9)) + RUSSIAN + EMOJI) * 2,
    "escaped JSON": lambda: json.dumps([{"text": CHINESE[:80], "number": n} for n in range(9)]),
    "prose in capitals": lambda: (PROSE * 3).upper(),
    "base32": lambda: base64.b32encode(_bytes(4000)).decode(),
}
