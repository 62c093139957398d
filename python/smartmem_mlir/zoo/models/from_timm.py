"""The networks that timm maintains (Wightman, "PyTorch Image Models")."""

from __future__ import annotations

from typing import Any

from smartmem_mlir.zoo.environment import without_torchvision

with without_torchvision():
    import timm
    from timm.models.convnext import ConvNeXt
    from timm.models.efficientvit_mit import EfficientVitLarge
    from timm.models.regnet import RegNet, RegNetCfg
    from timm.models.resnet import Bottleneck, ResNet
    from timm.models.swin_transformer import SwinTransformer
    from timm.models.vision_transformer import VisionTransformer

SMALL_CLASSES = 100
IMAGENET_21K = 21843
"""Classes of the original ViT checkpoints."""


def swin(small: bool) -> Any:
    """Swin-T. The small variant has the windows of 7x7 and the last three resolutions of the full one."""
    if not small:
        return timm.create_model("swin_tiny_patch4_window7_224")
    return SwinTransformer(img_size=112, embed_dim=48, depths=(2, 2, 2), num_heads=(2, 4, 8), num_classes=SMALL_CLASSES)


def vit(small: bool) -> Any:
    """ViT-B/16 with the ImageNet-21k head. The small variant has 65 tokens, an awkward number like 197."""
    if not small:
        return timm.create_model("vit_base_patch16_224", num_classes=IMAGENET_21K)
    return VisionTransformer(img_size=64, patch_size=8, embed_dim=192, depth=3, num_heads=3, num_classes=SMALL_CLASSES)


def efficientvit(small: bool) -> Any:
    """EfficientViT-L1."""
    if not small:
        return timm.create_model("efficientvit_l1")
    return EfficientVitLarge(
        widths=(8, 16, 32, 64, 96),
        depths=(1, 1, 1, 2, 2),
        head_dim=32,
        head_widths=(384, 400),
        num_classes=SMALL_CLASSES,
    )


def convnext(small: bool) -> Any:
    """ConvNeXt-T."""
    if not small:
        return timm.create_model("convnext_tiny")
    return ConvNeXt(depths=(1, 1, 2, 1), dims=(32, 64, 128, 256), num_classes=SMALL_CLASSES)


def regnet(small: bool) -> Any:
    """RegNetY-3.2GF."""
    if not small:
        return timm.create_model("regnety_032")
    config = RegNetCfg(w0=48, wa=48.0, wm=2.0, group_size=24, depth=7, se_ratio=0.25)
    return RegNet(config, num_classes=SMALL_CLASSES)


def resnext(small: bool) -> Any:
    """ResNeXt-50 32x4d."""
    if not small:
        return timm.create_model("resnext50_32x4d")
    return ResNet(
        Bottleneck,
        (2, 1, 1, 1),
        num_classes=SMALL_CLASSES,
        cardinality=8,
        base_width=4,
        stem_width=16,
        channels=(64, 96, 128, 192),
    )


def resnet50(small: bool) -> Any:
    """ResNet-50 (v1.5)."""
    if not small:
        return timm.create_model("resnet50")
    return ResNet(Bottleneck, (2, 1, 1, 1), num_classes=SMALL_CLASSES, stem_width=16, channels=(40, 56, 72, 168))
